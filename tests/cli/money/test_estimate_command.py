"""`trn estimate`: the table, the sources and the exit code. The arithmetic is tested in tests/core."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import GOOD, run, run_program
from tests.core.fake_prices import FakePrices
from trainium_cli.exit_codes import ExitCode
from trainium_core.prices import aws_prices

TRN2 = ("-c", "trn:instance_type=trn2.48xlarge", "-c", "trn:region=us-east-2")


@pytest.fixture(autouse=True)
def _in_an_empty_folder_on_a_usual_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def invoke(monkeypatch: pytest.MonkeyPatch, aws: FakePrices, *arguments: str) -> Any:
    monkeypatch.setattr(aws_prices, "AwsPrices", lambda region: aws if region == "us-west-2" else None)
    return run("estimate", *GOOD, *arguments)


def cells(shown: str, first: str) -> list[str]:
    (line,) = [line for line in shown.splitlines() if line.startswith(first)]
    return line.split()


def test_a_stack_without_known_prices_is_unknown_and_not_left_out() -> None:
    ended = run("estimate", *GOOD, "-c", "trn:stacks=hyperpod", "--offline")
    assert ended.exit_code == ExitCode.UNKNOWN
    assert cells(ended.stdout, "1 x ml.trn1.32xlarge")[-3:] == ["unknown", "unknown", "unknown"]
    assert "Not known in us-west-2: sagemaker-hyperpod, sagemaker-hyperpod-storage." in " ".join(ended.stdout.split())
    assert "`trn sleep` does not affect it." in " ".join(ended.stdout.split())


def test_offline_prices_are_a_snapshot_and_say_so() -> None:
    ended = run("estimate", *GOOD, "-c", "trn:nodes=2", "--hours", "40", "--offline")
    assert ended.exit_code == ExitCode.OK
    assert cells(ended.stdout, "2 x trn1.32xlarge ")[3:] == ["21.50", "/hour", "[1]", "$43.00", "-", "$1,720.00"]
    assert "[1] snapshot in this package, 2026-09-01: " in ended.stdout
    assert "US dollars by list price, before tax and discounts." in ended.stdout
    assert "AWS's prices are unavailable" not in ended.stdout


@pytest.mark.parametrize("egress", ["vpc-endpoints", "nat-gateway", "none"])
def test_the_table_fits_a_screen_of_80_columns_without_breaking_a_row(egress: str) -> None:
    shown = run("estimate", *GOOD, "-c", "trn:nodes=100", "-c", f"trn:egress={egress}", "--offline").stdout
    rows = shown.split("─\n")[1].split("\n\n")[0].splitlines()
    assert all(len(row.rstrip()) <= 80 for row in shown.splitlines())
    assert all("/" in row for row in rows)


def test_what_aws_says_is_shown_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakePrices())
    assert ended.exit_code == ExitCode.OK
    assert "[1] AWS, 2026-11-21: AWS as faked" in ended.stdout
    assert "snapshot" not in ended.stdout


def test_why_aws_did_not_answer_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakePrices(unavailable={"price"}))
    assert "AWS's prices are unavailable: no answer about price" in ended.stdout
    assert "[1] snapshot" in ended.stdout


def test_a_missing_price_is_unknown_in_the_row_the_total_and_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    usd: dict[str, Decimal | None] = {"interface-endpoint": None}
    ended = invoke(monkeypatch, FakePrices(usd=usd))
    assert ended.exit_code == ExitCode.UNKNOWN
    assert cells(ended.stdout, "2 interface").count("unknown") == 3
    assert "Asleep, per month  $0.00" in ended.stdout
    assert "trn:prices=prices.csv" in ended.stdout


def test_a_missing_price_of_what_is_billed_by_use_leaves_the_totals_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakePrices(usd={"s3-storage": None}))
    assert ended.exit_code == ExitCode.OK
    assert "Not known in us-west-2: s3-storage." in ended.stdout


def test_a_price_of_your_own_fills_the_gap(tmp_path: Path) -> None:
    header = "product,instance_type,region,usd,date,source\n"
    rows = ["on-demand,trn2.48xlarge", "gp3-storage,", "gp3-throughput,", "interface-endpoint,"]
    text = header + "".join(f"{row},us-east-2,2,2026-11-01,our agreement\n" for row in rows)
    (tmp_path / "mine.csv").write_text(text)
    without = run("estimate", *TRN2, "--offline")
    ended = run("estimate", *TRN2, "--offline", "-c", "trn:prices=mine.csv")
    assert (without.exit_code, ended.exit_code) == (ExitCode.UNKNOWN, ExitCode.OK)
    assert "[1] your own, 2026-11-01: our agreement" in ended.stdout


def test_an_on_demand_plan_that_aws_sells_as_blocks_only_is_warned() -> None:
    shown = " ".join(run("estimate", *TRN2, "--offline").stdout.split())
    assert "warning: AWS lists no on-demand price for trn2.48xlarge in us-east-2" in shown


@pytest.mark.parametrize(
    ("capacity", "says"), [("capacity-block", "is paid when it is bought"), ("reservation", "until you cancel it")]
)
def test_reserved_capacity_says_what_it_costs_without_nodes(capacity: str, says: str) -> None:
    reserved = ("-c", f"trn:capacity={capacity}", "-c", "trn:reservation_id=cr-0123456789abcdef0")
    assert says in " ".join(run("estimate", *GOOD, *reserved, "--offline").stdout.split())


def test_json_holds_each_line_with_its_price_and_source() -> None:
    printed = json.loads(run("estimate", *GOOD, "-c", "trn:nodes=2", "--offline", "--json").stdout)
    (instances, volumes, _throughput, storage, *_) = printed["lines"]
    assert (instances["product"], instances["quantity"], instances["running_hour"]) == ("on-demand", 2, 43.0)
    assert instances["price"]["usd"] == 21.5
    assert instances["price"]["origin"] == "snapshot"
    assert volumes["asleep_month"] == 0
    assert (storage["billed"], storage["running_hour"], storage["pilot"]) == ("by use", None, None)
    assert printed["totals"]["asleep_month"] == {"usd_at_least": 0.0, "unknown_prices": 0}


def test_an_unknown_price_is_null_in_json_and_never_zero() -> None:
    printed = json.loads(run("estimate", *TRN2, "--offline", "--json").stdout)
    assert printed["totals"]["running_hour"] == {"usd_at_least": 0.0, "unknown_prices": 4}
    assert printed["lines"][0]["running_hour"] is None
    assert printed["warning"]


@pytest.mark.parametrize("hours", ["0", "1.5"])
def test_hours_must_be_a_positive_integer(hours: str) -> None:
    assert run("estimate", *GOOD, "--hours", hours, "--offline").exit_code == ExitCode.BAD_INPUT


def test_without_credentials_the_snapshot_answers_and_says_why() -> None:
    nowhere = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    keys = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "none-such"}
    ended = run_program("estimate", *GOOD, AWS_EC2_METADATA_DISABLED="true", **nowhere, **keys)
    assert (ended.returncode, ended.stderr) == (ExitCode.OK, "")
    assert "AWS's prices are unavailable: The config profile (none-such) could not be found" in ended.stdout
