"""`trn estimate`: the table, the sources and the exit code. The arithmetic is tested in tests/core."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest

from tests.cli.running import GOOD, run
from tests.core.fake_prices import FakePrices
from trainium_cli.exit_codes import ExitCode
from trainium_core.aws import prices

TRN2 = ("-c", "trn:instance_type=trn2.48xlarge", "-c", "trn:region=us-east-2")


def invoke(monkeypatch: pytest.MonkeyPatch, aws: FakePrices, *arguments: str) -> Any:
    monkeypatch.setattr(prices, "AwsPrices", lambda region: aws if region == "us-west-2" else None)
    return run("estimate", *GOOD, *arguments)


def cells(shown: str, first: str) -> list[str]:
    (line,) = [line for line in shown.splitlines() if line.startswith(first)]
    return line.split()


def test_offline_prices_are_marked_as_snapshot() -> None:
    ended = run("estimate", *GOOD, "-c", "trn:nodes=2", "--hours", "40", "--offline")
    assert ended.exit_code == ExitCode.OK
    assert cells(ended.stdout, "2 x trn1.32xlarge ")[3:] == ["21.50", "/hour", "[1]", "$43.00", "-", "$1,720.00"]
    assert "[1] snapshot in this package, 2026-09-01: " in ended.stdout
    assert "US dollars at list price, before tax and discounts." in ended.stdout
    assert "AWS prices are unavailable" not in ended.stdout


def test_estimate_covers_the_time_until_the_end_of_the_plan() -> None:
    ended = run("estimate", *GOOD, "-c", "trn:ends=5d", "--offline")
    assert " for 120 h of 1 x trn1.32xlarge" in ended.stdout


def test_reason_for_missing_aws_prices_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakePrices(unavailable={"price"}))
    assert "AWS prices are unavailable: no answer about price" in ended.stdout
    assert "[1] snapshot" in ended.stdout


def test_missing_price_is_unknown_in_row_total_and_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    usd: dict[str, Decimal | None] = {"nat-gateway": None}
    ended = invoke(monkeypatch, FakePrices(usd=usd))
    assert ended.exit_code == ExitCode.UNKNOWN
    assert cells(ended.stdout, "NAT gateway  ").count("unknown") == 3
    assert re.search(r"Running: at least \S+, 1 amount unknown per hour", ended.stdout)
    assert "Asleep: $5.00 per month" in ended.stdout
    assert "trn:prices=prices.csv" in ended.stdout


def test_outdated_block_price_is_unknown_and_in_no_total() -> None:
    block = ("capacity=capacity-block", "reservation_id=cr-0123456789abcdef0", "instance_type=p4d.24xlarge")
    ended = run("estimate", *GOOD, *(word for setting in block for word in ("-c", f"trn:{setting}")), "--offline")
    assert ended.exit_code == ExitCode.UNKNOWN
    assert "unknown, was 14.75 on 2024-12-31" in " ".join(ended.stdout.split())
    assert re.search(r"Running: at least \$[0-9.]+, 1 amount unknown per hour", ended.stdout)


def test_json_contains_each_line_with_price_and_source() -> None:
    printed = json.loads(run("estimate", *GOOD, "-c", "trn:nodes=2", "--offline", "--json").stdout)
    (instances, volumes, _throughput, storage, *_) = printed["lines"]
    assert (instances["product"], instances["quantity"], instances["running_hour"]) == ("on-demand", 2, 43.0)
    assert instances["price"]["usd"] == 21.5
    assert instances["price"]["origin"] == "snapshot"
    assert volumes["asleep_month"] == 0
    assert (storage["billed"], storage["running_hour"], storage["pilot"]) == ("by use", None, None)
    assert printed["totals"]["asleep_month"] == {"usd_at_least": 3.4, "unknown_prices": 0}


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        ((), "With trn:egress=vpc-endpoints, without internet access, a running hour costs $21.61."),
        (("trn:egress=none",), "With trn:egress=nat-gateway, with internet access, a running hour costs $21.64."),
        (("trn:vpc_id=vpc-0123456789abcdef0", "trn:subnet_id=subnet-0123456789abcdef0"), None),
    ],
)
def test_price_of_the_other_egress_is_shown(settings: tuple[str, ...], last: str | None) -> None:
    options = [option for text in settings for option in ("-c", text)]
    shown = run("estimate", *GOOD, "-c", "trn:nodes=1", *options, "--offline").stdout
    assert re.findall(r"^With trn:egress=.*$", shown, re.MULTILINE) == ([] if last is None else [last])
