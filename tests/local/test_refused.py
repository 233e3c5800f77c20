"""Deployments that AWS refuses, and twins that it accepts: `refused/*.yaml`, one server for all.

Each case names what AWS answers and where that is documented. A reason is compared only where the case has one.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, Template

CASES_FOLDER = Path(__file__).parent / "refused"
NOT_REFUSED_YET = frozenset((CASES_FOLDER / "not_refused_yet.txt").read_text().splitlines())
THREADS = 6

Case = dict[str, Any]

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where PyYAML has it: it is ten times as fast, and every worker reads all cases."""

CASES: list[Case] = [
    case for file in sorted(CASES_FOLDER.glob("*.yaml")) for case in yaml.load(file.read_text(), Loader=LOADER)
]


class _Attempt:
    """One deployment of a case's templates, in a stack that is deleted again."""

    def __init__(self, aws: EmbeddedAws, case: Case) -> None:
        self._stacks, self._case = Stacks(aws), case
        self._arguments = {
            "Capabilities": case.get("capabilities", []),
            "Parameters": [
                {"ParameterKey": key, "ParameterValue": value} for key, value in case.get("parameters", {}).items()
            ],
        }

    def refusal(self) -> str | None:
        """Why the last of the case's templates was refused; None if it was not."""
        if "update" not in self._case:
            return self.failure(self._case["template"])
        return self.failure(self._case["template"], self._case["update"])

    def failure(self, *templates: Template) -> str | None:
        name = status = ""
        try:
            for number, template in enumerate(templates):
                try:
                    if not name:
                        name = self._stacks.create(template, **self._arguments)
                        status = self._stacks.settled(name)
                    else:
                        status = self._stacks.update(name, template, **self._arguments)
                except ClientError as error:
                    status, reason = "REFUSED", str(error)
                else:
                    reason = ""
                if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                    reason = reason or self._stacks.failures(name) or self._stacks.reasons(name)
                    assert number == len(templates) - 1, f"the first template failed: {status} {reason}"
                    assert "the embedded AWS failed" not in reason, reason
                    return f"{status}: {reason}"
            return None
        finally:
            if name and status != "ROLLBACK_COMPLETE":
                self._stacks.delete(name)


@pytest.fixture(scope="module")
def attempts(embedded_aws: EmbeddedAws) -> Iterator[dict[str, Future[tuple[str | None, str | None]]]]:
    """The reason why each case was refused and the reason, if any, why its valid twin was."""

    def attempt(case: Case) -> tuple[str | None, str | None]:
        one = _Attempt(embedded_aws, case)
        return one.refusal(), one.failure(case["valid"]) if "valid" in case else None

    with ThreadPoolExecutor(THREADS) as pool:
        yield {case["name"]: pool.submit(attempt, case) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_aws_refuses_is_refused_and_its_twin_is_not(
    case: Case, attempts: dict[str, Future[tuple[str | None, str | None]]], request: pytest.FixtureRequest
) -> None:
    if case["name"] in NOT_REFUSED_YET:
        request.applymarker(pytest.mark.xfail(reason="accepted wrongly"))
    refusal, twin = attempts[case["name"]].result()
    assert twin is None, f"the valid twin was refused: {twin}"
    assert refusal is not None, "accepted"
    assert case["refused"] in refusal


def test_every_case_is_reported_once() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))
    assert set(names) >= NOT_REFUSED_YET, "what was renamed or removed"
