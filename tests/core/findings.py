"""The finding of a single check."""

from typing import Any

from tests.core.fake_account import FakeAccount
from tests.core.plans import from_settings
from trainium_core.preflight.finding import Finding
from trainium_core.preflight.runner import preflight


def finding_of(check: str, account: FakeAccount, **settings: Any) -> Finding:
    """The finding of one check, for a plan of two nodes."""
    plan = from_settings(nodes=2, **settings)
    (finding,) = [finding for finding in preflight(plan, account) if finding.check == check]
    return finding
