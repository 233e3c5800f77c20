"""`trn capacity buy` buys only after a person at a terminal confirmed twice, and no other command can buy."""

from dataclasses import replace
from decimal import Decimal

import pytest
from click.testing import Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.running import GOOD, run, run_program
from tests.core.fake_account import FakeAccount
from tests.core.fake_capacity import BLOCK
from tests.layout.repository import ROOT, python_files
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan import capacity_buy_command
from trainium_core.capacity.aws_purchase import PurchasedBlock, SaleUnknownError
from trainium_runtime.errors import RequestRefusedError

BOUGHT = PurchasedBlock(reservation_id="cr-0123456789abcdef0", state="payment-pending")
OFFERING = replace(BLOCK, upfront_fee=Decimal("858.26"))


class Shop:
    """An account with one block for sale, and the purchases made in it."""

    def __init__(self) -> None:
        self.account = FakeAccount(blocks=[OFFERING])
        self.bought: list[tuple[str, str]] = []
        self.fails_with: Exception | None = None
        self.is_interactive = True

    def buy(self, *typed: str, offering_id: str = OFFERING.offering_id, options: tuple[str, ...] = ()) -> Result:
        return run("capacity", "buy", offering_id, *GOOD, *options, stdin="\n".join([*typed, ""]) if typed else "")


class Purchase:
    def __init__(self, shop: Shop, region: str) -> None:
        self.shop, self.region = shop, region

    def buy(self, offering_id: str) -> PurchasedBlock:
        self.shop.bought.append((self.region, offering_id))
        if self.shop.fails_with:
            raise self.shop.fails_with
        return BOUGHT


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop()
    monkeypatch.setattr(capacity_buy_command, "AwsAccount", lambda _: made.account)
    monkeypatch.setattr(capacity_buy_command, "AwsCapacityPurchase", lambda region: Purchase(made, region))
    monkeypatch.setattr(capacity_buy_command, "_is_interactive", lambda: made.is_interactive)
    return made


def test_two_confirmations_buy_exactly_that_offering_once(shop: Shop) -> None:
    ended = shop.buy("y", "858.26")
    assert (ended.exit_code, shop.bought) == (ExitCode.OK, [("us-west-2", OFFERING.offering_id)])


def test_purchase_prints_the_settings_to_use(shop: Shop) -> None:
    shown = shop.buy("y", "858.26").stdout
    assert "cr-0123456789abcdef0 is payment-pending" in shown
    for setting in (
        '"trn:capacity": "capacity-block"',
        '"trn:region": "us-west-2"',
        '"trn:availability_zone_id": "usw2-az4"',
        '"trn:reservation_id": "cr-0123456789abcdef0"',
    ):
        assert setting in shown


def test_price_dates_zone_and_account_are_shown_before_the_prompt(shop: Shop) -> None:
    shown = shop.buy("n").stdout.partition("Buy it?")[0]
    for part in (
        "858.26 USD",
        "2026-11-22 11:30 UTC",
        "2026-11-23 11:30 UTC, 24 h after",
        "usw2-az4 in us-west-2",
        "1 x trn1.32xlarge",
        "123456789012",
        "cannot be cancelled",
    ):
        assert part in shown


@pytest.mark.parametrize("typed", [("n", "858.26"), ("y", "858.27"), ("y", "NaN")])
def test_missing_confirmation_buys_nothing(shop: Shop, typed: tuple[str, ...]) -> None:
    ended = shop.buy(*typed)
    assert (ended.exit_code, shop.bought) == (ExitCode.NOT_READY, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.text(st.characters(codec="utf-8", exclude_characters="\r\n")),
    second=st.text(st.sampled_from("0123456789.y $")),
)
def test_only_yes_and_the_price_confirm(shop: Shop, first: str, second: str) -> None:
    shop.bought.clear()
    shop.buy(first, second)
    says_yes = first.strip().casefold() in ("y", "yes")
    assert (not shop.bought) or (says_yes and Decimal(second.strip()) == OFFERING.upfront_fee)


def test_without_terminal_purchase_is_refused_before_any_request(shop: Shop) -> None:
    shop.is_interactive = False
    shop.account = FakeAccount(blocks=[OFFERING], unavailable={"identity", "blocks"})
    ended = shop.buy("y", "858.26")
    assert (ended.exit_code, shop.bought) == (ExitCode.BAD_INPUT, [])
    assert "run it in a terminal" in ended.stderr


def test_pipe_is_not_a_terminal() -> None:
    ended = run_program("capacity", "buy", OFFERING.offering_id, *GOOD)
    assert ended.returncode == ExitCode.BAD_INPUT
    assert "run it in a terminal" in ended.stderr


@pytest.mark.parametrize("option", ["--yes", "-y", "--force", "--json"])
def test_no_option_confirms_the_purchase(shop: Shop, option: str) -> None:
    ended = shop.buy("y", "858.26", options=(option,))
    assert (ended.exit_code, shop.bought) == (ExitCode.BAD_INPUT, [])


def test_expired_offering_is_not_bought(shop: Shop) -> None:
    ended = shop.buy("y", "858.26", offering_id="cb-0123456789abcdef1")
    assert (ended.exit_code, shop.bought) == (ExitCode.NOT_READY, [])
    assert "us-west-2 offers no cb-0123456789abcdef1 for 1 x trn1.32xlarge and 24 h" in ended.stderr


@pytest.mark.parametrize("question", ["identity", "blocks"])
def test_unreadable_offering_is_not_bought(shop: Shop, question: str) -> None:
    shop.account = FakeAccount(blocks=[OFFERING], unavailable={question})
    ended = shop.buy("y", "858.26")
    assert (ended.exit_code, shop.bought) == (ExitCode.UNKNOWN, [])
    assert f"Nothing was bought: no answer about {question}" in ended.stderr


def test_outdated_price_does_not_confirm(shop: Shop) -> None:
    shop.account = FakeAccount(blocks=[replace(OFFERING, upfront_fee=Decimal("999.00"))])
    assert shop.buy("y", "858.26").exit_code == ExitCode.NOT_READY
    assert shop.bought == []


def test_refusal_of_aws_reports_that_nothing_was_bought(shop: Shop) -> None:
    shop.fails_with = RequestRefusedError("AWS answered InvalidParameterValue: gone")
    ended = shop.buy("y", "858.26")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Nothing was bought: AWS answered InvalidParameterValue: gone" in ended.stderr


def test_missing_response_reports_possible_purchase(shop: Shop) -> None:
    shop.fails_with = SaleUnknownError("timeout")
    ended = shop.buy("y", "858.26")
    assert (ended.exit_code, len(shop.bought)) == (ExitCode.UNKNOWN, 1)
    assert "Unknown whether the Capacity Block was bought: timeout" in ended.stderr
    assert "Nothing was bought" not in ended.output


def users_of(text: str) -> list[str]:
    others = [file for file in python_files() if file.parts[0] != "tests" and "local" not in str(file)]
    return [str(file) for file in others if text in (ROOT / file).read_text()]


def test_no_other_command_can_buy() -> None:
    assert users_of("purchase_capacity_block") == ["src/trainium_core/capacity/aws_purchase.py"]
    assert users_of("capacity.aws_purchase") == ["src/trainium_cli/plan/capacity_buy_command.py"]
    assert users_of("capacity_buy_command") == ["src/trainium_cli/plan/capacity_command.py"]
