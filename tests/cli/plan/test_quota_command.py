"""`trn quota`: its output, its requests to AWS and their conditions, and the exit codes. tests/core has the
arithmetic.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from click.testing import Result

from tests.cli.running import GOOD, run
from tests.core.fake_quotas import ON_DEMAND, FakeQuotas
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan import quota_command
from trainium_core.aws.quota_requests import AlreadyRequestedError
from trainium_runtime.quota import Quota, QuotaRequest, RunningInstance

FRIDAY = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def request(desired: float, status: str = "CASE_OPENED") -> QuotaRequest:
    return QuotaRequest(
        request_id="r-1", desired=desired, status=status, created=FRIDAY, updated=FRIDAY, case_id="170001"
    )


@dataclass
class Aws:
    """Records requests for a quota, and raises an error or leaves the request pending."""

    error: Exception | None = None
    requests: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])

    def request_increase(self, service: str, code: str, *, desired: float) -> QuotaRequest:
        self.requests.append((service, code, desired))
        if self.error:
            raise self.error
        return QuotaRequest(request_id="r-2", desired=desired, status="PENDING", created=FRIDAY)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    aws = Aws()
    monkeypatch.setattr(quota_command, "AwsQuotaRequests", lambda _region: aws)
    return aws


JOB = "ml.trn1.32xlarge for training job usage"


def run_quota(
    monkeypatch: pytest.MonkeyPatch, accounts: Sequence[FakeQuotas], *arguments: str, typed: str | None = None
) -> Result:
    """Run `trn quota` for a plan of 128 vCPUs. Each read of the account returns the next state, then the last one
    again.
    """
    ahead = list(accounts)

    def account(_region: str) -> FakeQuotas:
        return ahead.pop(0) if len(ahead) > 1 else ahead[0]

    monkeypatch.setattr(quota_command, "AwsAccount", account)
    return run("quota", *arguments, *GOOD, stdin=typed)


@pytest.mark.parametrize(
    ("account", "code"),
    [
        (FakeQuotas(), ExitCode.OK),
        (FakeQuotas(limit=127), ExitCode.NOT_READY),
        (FakeQuotas(unavailable={"quota"}), ExitCode.UNKNOWN),
    ],
)
def test_exit_code_of_status_is_that_of_preflight(
    monkeypatch: pytest.MonkeyPatch, account: FakeQuotas, code: ExitCode
) -> None:
    assert run_quota(monkeypatch, [account], "status").exit_code == code


def test_json_status_has_outcome_need_and_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run_quota(monkeypatch, [FakeQuotas(limit=0, requests=[request(256)])], "status", "--json")
    printed = json.loads(ended.stdout)
    assert (printed["outcome"], printed["needed"]) == ("fail", "128 vCPUs")
    assert [r["desired"] for r in printed["requests"]] == [256]


@pytest.mark.parametrize(
    ("limit", "outcome", "code"), [(0, "fail", ExitCode.NOT_READY), (None, "unknown", ExitCode.UNKNOWN)]
)
def test_status_includes_quotas_of_other_services(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, outcome: str, code: ExitCode
) -> None:
    quotas = {} if limit is None else {JOB: Quota(code="L-00000001", name=JOB, limit=limit)}
    account = FakeQuotas(sagemaker=quotas)
    ended = run_quota(monkeypatch, [account], "status", "-c", "trn:stacks=cluster,sagemaker", "--json")
    assert ended.exit_code == code, ended.output
    assert json.loads(ended.stdout)["services"]["sagemaker"]["outcome"] == outcome


def test_request_is_for_used_and_needed_vcpus(monkeypatch: pytest.MonkeyPatch, aws: Aws) -> None:
    account = FakeQuotas(limit=64, running=[RunningInstance(vcpus=64, capacity="on-demand")])
    ended = run_quota(monkeypatch, [account], "request", "--yes")
    assert aws.requests == [("ec2", ON_DEMAND, 192)]
    assert ended.exit_code == ExitCode.OK
    assert "request r-2 is PENDING" in ended.stdout


def test_sufficient_quota_requests_nothing(monkeypatch: pytest.MonkeyPatch, aws: Aws) -> None:
    ended = run_quota(monkeypatch, [FakeQuotas()], "request", "--yes")
    assert (ended.exit_code, aws.requests) == (ExitCode.OK, [])
    assert "Nothing to request." in ended.stdout


@pytest.mark.parametrize("question", ["quota", "requests"])
def test_unknown_usage_requests_nothing(monkeypatch: pytest.MonkeyPatch, aws: Aws, question: str) -> None:
    ended = run_quota(monkeypatch, [FakeQuotas(limit=0, unavailable={question})], "request", "--yes")
    assert (ended.exit_code, aws.requests) == (ExitCode.UNKNOWN, [])
    assert f"no answer about {question}" in ended.stdout


@pytest.mark.parametrize(("desired", "code"), [(128, ExitCode.OK), (127, ExitCode.NOT_READY)])
def test_open_request_is_reported_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, aws: Aws, desired: int, code: ExitCode
) -> None:
    ended = run_quota(monkeypatch, [FakeQuotas(limit=0, requests=[request(desired)])], "request", "--yes")
    assert (ended.exit_code, aws.requests) == (code, [])
    assert f"already open: r-1 for {desired} vCPUs, CASE_OPENED since 2026-11-20, case 170001" in ended.stdout


def test_concurrent_request_is_reported(monkeypatch: pytest.MonkeyPatch, aws: Aws) -> None:
    aws.error = AlreadyRequestedError()
    accounts = [FakeQuotas(limit=0), FakeQuotas(limit=0, requests=[request(256)])]
    ended = run_quota(monkeypatch, accounts, "request", "--yes")
    assert ended.exit_code == ExitCode.OK
    assert "A request is already open: r-1" in ended.stdout


def test_json_request_has_the_requested_vcpus(monkeypatch: pytest.MonkeyPatch, aws: Aws) -> None:
    ended = run_quota(monkeypatch, [FakeQuotas(limit=0)], "request", "--yes", "--json")
    assert json.loads(ended.stdout)["request"]["desired"] == 128
    assert len(aws.requests) == 1


def test_status_shows_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [request(256), request(64, "DENIED")]
    shown = run_quota(monkeypatch, [FakeQuotas(limit=0, requests=requests)], "status").stdout
    rows = [line.split() for line in shown.splitlines() if line.startswith("2026-11-20")]
    assert [row[2:4] for row in rows] == [["256", "CASE_OPENED"], ["64", "DENIED"]]
    assert rows[0][-2:] == ["170001", "r-1"]


def test_request_requires_confirmation(monkeypatch: pytest.MonkeyPatch, aws: Aws) -> None:
    ended = run_quota(monkeypatch, [FakeQuotas(limit=0)], "request", typed="n\n")
    assert (ended.exit_code, aws.requests) == (ExitCode.NOT_READY, [])
    assert "Nothing was requested." in ended.stdout


@pytest.mark.parametrize("again", [FakeQuotas(limit=0), FakeQuotas(limit=0, unavailable={"requests"})])
def test_request_missing_in_history_is_unknown(monkeypatch: pytest.MonkeyPatch, aws: Aws, again: FakeQuotas) -> None:
    aws.error = AlreadyRequestedError()
    ended = run_quota(monkeypatch, [FakeQuotas(limit=0), again], "request", "--yes")
    assert ended.exit_code == ExitCode.UNKNOWN
