"""`trn capacity`: the tables, the next commands, and the exit code. The search is tested in tests/core."""

import json
import shlex
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.aws_cli import command_error
from tests.cli.running import GOOD, run
from tests.core.fake_account import FakeAccount
from tests.core.fake_capacity import ACTIVE, BLOCK, EXTENSION
from tests.core.plans import RESERVATION
from tests.layout.repository import ROOT, python_files
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan import capacity_command
from trainium_core.plan.context import plan_from_file

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
FOR_SALE = replace(BLOCK, start=TOMORROW, end=TOMORROW + timedelta(days=1))
NOTHING = FakeAccount(zones=(), scores={})


class CapacityCommand:
    """Runs the command with the same account in all regions, or with a separate account in each region."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.regions: list[str] = []

    def __call__(self, account: FakeAccount | dict[str, FakeAccount], *arguments: str) -> Result:
        def account_in(region: str, **_: Any) -> FakeAccount:
            self.regions.append(region)
            return account[region] if isinstance(account, dict) else account

        self.monkeypatch.setattr(capacity_command, "AwsAccount", account_in)
        return run("capacity", *GOOD, *arguments)


@pytest.fixture
def capacity(monkeypatch: pytest.MonkeyPatch) -> CapacityCommand:
    return CapacityCommand(monkeypatch)


HERE = ("--regions", "us-west-2")


@pytest.mark.parametrize(
    ("account", "code", "message"),
    [
        (FakeAccount(), ExitCode.OK, "Options: 4 now, 0 later. Best: 1, on-demand, us-west-2, usw2-az1."),
        (NOTHING, ExitCode.NOT_READY, "No option could start the nodes."),
        (
            FakeAccount(zones=(), unavailable={"blocks"}),
            ExitCode.UNKNOWN,
            "Unknown: no option could start the nodes, and a result is missing.",
        ),
    ],
)
def test_last_line_and_exit_code_match_the_result(
    capacity: CapacityCommand, account: FakeAccount, code: ExitCode, message: str
) -> None:
    ended = capacity(account, *HERE)
    assert (ended.exit_code, ended.stdout.splitlines()[-1]) == (code, message)


def test_only_named_regions_are_queried(capacity: CapacityCommand) -> None:
    capacity(FakeAccount(), "--regions", "us-east-1, us-west-2,us-east-1")
    assert sorted(capacity.regions) == ["us-east-1", "us-west-2"]


def rows(ended: Result) -> list[list[str]]:
    return [line.split() for line in ended.stdout.splitlines() if line.strip()]


def test_unknown_price_is_shown_as_unknown(capacity: CapacityCommand) -> None:
    ended = capacity(FakeAccount(zones=["usw2-az4"], usd={"spot": None}), *HERE)
    assert ["2", "now", "spot", "us-west-2", "usw2-az4", "now", "24", "unknown", "unknown", "score", "9"] in rows(ended)


def test_table_fits_the_width_of_a_pipe(capacity: CapacityCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    ended = capacity(FakeAccount(account_reservations=[ACTIVE], blocks=[FOR_SALE]), *HERE)
    assert max(map(len, ended.stdout.splitlines())) <= 120
    assert any(line.split()[:2] == ["Prospect", "What"] for line in ended.stdout.splitlines())


def commands(ended: Result) -> list[list[str]]:
    whole = ended.stdout.replace(" \\\n", " ")
    return [shlex.split(line)[1:] for line in whole.splitlines() if " trn preflight " in line]


@pytest.mark.parametrize(
    "own", [(), ("-c", "trn:capacity=reservation", "-c", "trn:reservation_id=cr-0123456789abcdef0")]
)
def test_next_commands_are_valid_plans(capacity: CapacityCommand, own: tuple[str, ...]) -> None:
    found = commands(capacity(FakeAccount(account_reservations=[ACTIVE], blocks=[FOR_SALE]), *HERE, *own))
    assert found
    for command in found:
        overrides = [word for flag, word in pairwise(command) if flag == "-c"]
        assert plan_from_file(None, overrides).region == "us-west-2"


def test_json_has_options_prices_and_sources(capacity: CapacityCommand) -> None:
    ended = capacity(
        FakeAccount(account_reservations=[ACTIVE], blocks=[FOR_SALE], unavailable={"price"}), *HERE, "--json"
    )
    printed = json.loads(ended.stdout)
    assert (printed["outlook"], printed["hours"], printed["nodes"]) == ("something", 24, 1)
    (block,) = [option for option in printed["options"] if option["capacity"] == "capacity-block"]
    assert (block["total"], block["hourly"], block["offering_id"]) == (360.0, 15.0, FOR_SALE.offering_id)
    assert printed["extensions"] is None
    assert all(source.startswith("snapshot, 20") for source in printed["prices"])
    assert printed["prices_unavailable"] == ["no answer about price"]


def test_block_for_sale_has_the_purchase_command_and_later_settings(capacity: CapacityCommand, tmp_path: Path) -> None:
    account = FakeAccount(blocks=[FOR_SALE])
    options = (*HERE, "-c", "trn:nodes=2", "-c", "trn:capacity=spot")
    (block,) = [
        option
        for option in json.loads(capacity(account, *options, "--json").stdout)["options"]
        if option["offering_id"]
    ]
    assert command_error(block["next"]) == ""
    assert shlex.split(block["next"])[3:] == [
        *("--capacity-block-offering-id", FOR_SALE.offering_id),
        *("--instance-platform", "Linux/UNIX", "--region", "us-west-2"),
    ]
    assert block["settings"].pop("trn:reservation_id", "") is None
    written = tmp_path / "cdk.json"
    written.write_text(json.dumps({"context": block["settings"] | {"trn:reservation_id": RESERVATION}}))
    plan = plan_from_file(written, [])
    assert (plan.capacity, plan.availability_zone_id, plan.nodes) == ("capacity-block", FOR_SALE.zone_id, 2)


def test_purchase_shows_price_dates_and_settings(capacity: CapacityCommand) -> None:
    shown = capacity(FakeAccount(blocks=[FOR_SALE]), *HERE).stdout
    command = shown[shown.index("aws ec2 purchase-capacity-block ") :]
    for part in (
        "buys 1 x trn1.32xlarge in usw2-az4 ",
        f"from {FOR_SALE.start:%Y-%m-%d %H:%M} to {FOR_SALE.end:%Y-%m-%d %H:%M} UTC for $360.00",
        '"trn:capacity": "capacity-block"',
        '"trn:reservation_id": "CapacityReservationId"',
        "cannot be cancelled",
        "terminates the nodes in a Capacity Block 30 minutes before its end. Jobs get a notice 60 minutes before",
    ):
        assert part in command


IN_BLOCK = (*HERE, "-c", "trn:capacity=capacity-block", "-c", f"trn:reservation_id={RESERVATION}")
EXTENDABLE = FakeAccount(extensions={RESERVATION: [EXTENSION]})


def test_extension_of_the_plans_block_has_its_purchase_command(capacity: CapacityCommand) -> None:
    found = json.loads(capacity(EXTENDABLE, *IN_BLOCK, "--json").stdout)["extensions"]
    assert (found["reservation_id"], found["unknown"]) == (RESERVATION, None)
    (offering,) = found["offerings"]
    assert (offering["end"], offering["upfront_fee"]) == (str(EXTENSION.end), 1360.0)
    assert command_error(offering["next"]) == ""
    assert shlex.split(offering["next"])[2:] == [
        *("purchase-capacity-block-extension", "--capacity-block-extension-offering-id", EXTENSION.offering_id),
        *("--capacity-reservation-id", RESERVATION, "--region", "us-west-2"),
    ]


@pytest.mark.parametrize(
    ("account", "says"),
    [
        (EXTENDABLE, f"{EXTENSION.offering_id} {EXTENSION.end:%Y-%m-%d %H:%M} 1,360.00 USD"),
        (FakeAccount(extensions={RESERVATION: []}), f"No extension of {RESERVATION} by 24 h is for sale."),
        (FakeAccount(unavailable={"extensions"}), "by 24 h: unknown: no answer about extensions"),
    ],
)
def test_extensions_are_shown_with_end_and_price(capacity: CapacityCommand, account: FakeAccount, says: str) -> None:
    assert says in " ".join(capacity(account, *IN_BLOCK).stdout.split())


def test_reservation_that_is_not_a_block_has_no_extensions(capacity: CapacityCommand) -> None:
    shown = capacity(EXTENDABLE, *HERE, "-c", "trn:capacity=reservation", "-c", f"trn:reservation_id={RESERVATION}")
    assert "xtension" not in shown.stdout


def test_nothing_in_the_product_buys_capacity() -> None:
    product = [file for file in python_files() if file.parts[0] == "src" and file.parts[1] != "trainium_local"]
    assert [str(file) for file in product if ".purchase_capacity" in (ROOT / file).read_text()] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hours", "25"), "nearest: 48"),
        (("--start-by", "2020-01-01"), "--start-by: got '2020-01-01'\n    allowed: a day in UTC, 20"),
        (("--regions", "us-west-1"), "nearest: us-west-2"),
        (("--regions", " ,"), "--regions is empty"),
    ],
)
def test_bad_usage_makes_no_request(capacity: CapacityCommand, arguments: Collection[str], message: str) -> None:
    ended = capacity(FakeAccount(), *arguments)
    assert (ended.exit_code, message in ended.stderr, capacity.regions) == (ExitCode.BAD_INPUT, True, [])
