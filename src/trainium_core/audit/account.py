"""What an audit asks of an account, beside its listings."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from trainium_core.audit.resource import ResourceLister
from trainium_core.audit.stack_record import StackRecord
from trainium_core.identity.caller import Identities
from trainium_core.prices.price import Prices


class AuditedAccount(Identities, Prices, Protocol):
    """Each method raises UnavailableError without an answer."""

    def listers(self, account_id: str) -> Sequence[ResourceLister]:
        """One for each kind of thing; this asks nothing yet."""
        ...

    def tagged(self) -> Mapping[str, str]:
        """The value of the tag trn:cluster of everything that has one, by ARN."""
        ...

    def stack_records(self, names: Sequence[str]) -> Sequence[StackRecord]:
        """Every stack that stands, and those deleted in the last 90 days that had one of the names.

        `made` is filled in for those that carry a tag trn:cluster or one of the names.
        """
        ...

    def calls(self) -> Mapping[str, int]:
        """How often each call was made until now."""
        ...
