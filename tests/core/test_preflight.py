"""The overall result of preflight: unknown is never ready, and suppressed checks are shown."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from tests.core.plans import from_settings
from trainium_core.preflight.finding import Finding, verdict, worst_result
from trainium_core.preflight.runner import CHECKS, preflight
from trainium_runtime.check_result import CheckResult

PLAN = from_settings(nodes=2)


def test_suppressed_check_is_shown_and_does_not_count() -> None:
    findings = preflight(PLAN, FakeAccount(limit=0), suppressed={"quota"})
    (quota,) = [finding for finding in findings if finding.check == "quota"]
    assert quota == Finding(check="quota", outcome="unknown", found="not checked: suppressed", suppressed=True)
    assert verdict(findings) == "ready"


def test_plan_with_all_checks_suppressed_is_not_ready() -> None:
    assert verdict(preflight(PLAN, FakeAccount(), suppressed=CHECKS.keys())) == "unknown"


def test_identity_names_the_endpoint_of_an_emulator() -> None:
    account = FakeAccount(endpoint="http://127.0.0.1:4599")
    assert finding_of("identity", account).found.endswith("answered by http://127.0.0.1:4599, not by AWS")


outcomes = st.sampled_from(["pass", "warn", "fail", "unknown"])


@given(kinds=st.lists(outcomes, max_size=6))
def test_ready_requires_every_finding_to_pass_or_warn(kinds: list[Any]) -> None:
    result = verdict([Finding(check="x", outcome=kind, found="") for kind in kinds])
    assert (result == "ready") == (bool(kinds) and set(kinds) <= {"pass", "warn"})
    assert (result == "not ready") == ("fail" in kinds)


@given(kinds=st.lists(outcomes, min_size=1, max_size=6))
def test_combined_result_is_the_worst_result(kinds: list[Any]) -> None:
    answers = [CheckResult(outcome=kind, found=f"found {number}") for number, kind in enumerate(kinds)]
    result = worst_result(answers)
    assert verdict([Finding(check="x", outcome=result.outcome, found="")]) == verdict(
        [Finding(check="x", outcome=kind, found="") for kind in kinds]
    )
    assert all(answer.found in result.found.split("; ") for answer in answers if answer.outcome != "pass")
