"""`trn cost`: the numbers, their sources, and the exit code. The arithmetic is tested in tests/core."""

import json
from decimal import Decimal
from typing import Any

import pytest
from click.testing import Result

from tests.cli.running import GOOD, run
from tests.core.fake_spending import FIRST, FakeSpendingAccount, cluster_stack, launched, terminated
from trainium_cli.exit_codes import ExitCode
from trainium_cli.money import cost_command

RAN = {"stacks": [cluster_stack()], "activities": [launched(FIRST, 10), terminated(FIRST, 8)]}


def invoke(monkeypatch: pytest.MonkeyPatch, account: FakeSpendingAccount, *arguments: str) -> Result:
    monkeypatch.setattr(cost_command, "AwsSpendingAccount", lambda _region, **_: account)
    return run("cost", *GOOD, *arguments)


def test_node_cost_is_shown_as_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakeSpendingAccount(**RAN))
    assert ended.exit_code == ExitCode.OK
    line = next(line for line in ended.stdout.splitlines() if line.startswith("instance, on demand"))
    assert "$43.00" in line
    assert "estimated: 2.00 node-hours" in line


def test_cost_explorer_is_optional_and_its_price_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_bill, without_bill = FakeSpendingAccount(**RAN), FakeSpendingAccount(**RAN)
    assert "AWS bills $0.01" in invoke(monkeypatch, with_bill).stderr
    assert "bills" not in invoke(monkeypatch, without_bill, "--no-cost-explorer").stderr
    assert (len(with_bill.requests), len(without_bill.requests)) == (1, 0)


def test_unread_activities_exit_with_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakeSpendingAccount(stacks=[cluster_stack()], activities=None))
    assert ended.exit_code == ExitCode.UNKNOWN
    assert "when the nodes of group ran: the permission autoscaling:DescribeScalingActivities" in ended.stdout
    assert "1 amount unknown" in ended.stdout


def test_json_has_every_number_and_null_for_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, FakeSpendingAccount(**RAN), "--json", "-c", "trn:ends=40h")
    printed: dict[str, Any] = json.loads(ended.stdout)
    assert printed["billed_total"] is None
    assert "cost allocation tag" in printed["why_not_billed"]
    assert [round(line["usd"], 2) for line in printed["estimated"]] == [43.0, 0.11, 0.04]
    assert printed["per_hour_total"] == {"at_least": 0.0, "unknown_amounts": 0}
    assert round(printed["forecast"]["total"]["at_least"], 2) == 43.15


def test_bill_is_shown_with_its_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = invoke(monkeypatch, FakeSpendingAccount(**RAN, bill={"Amazon EC2": Decimal(12)})).stdout
    assert "$12.00, by Cost Explorer. Cost Explorer lags by up to a day" in shown
