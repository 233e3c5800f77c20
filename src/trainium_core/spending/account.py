"""What a cluster cost, as AWS bills it."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Protocol

from trainium_core.audit.account import AuditedAccount
from trainium_core.spending.node_runs import ScalingActivity


class SpendingAccount(AuditedAccount, Protocol):
    """Each method raises UnavailableError without an answer."""

    def scaling_activities(self, group: str) -> Sequence[ScalingActivity]:
        """What AWS remembers of a group, deleted or not: six weeks."""
        ...

    def billed(self, cluster: str, start: date, end: date) -> Mapping[str, Decimal]:
        """US dollars by service, by the tag trn:cluster. `end` is the day after the last. The question costs money."""
        ...
