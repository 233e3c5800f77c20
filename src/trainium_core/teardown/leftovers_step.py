"""Steps that delete what is left of a cluster outside its stacks, one for each kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from trainium_core.teardown.account import Leftover, LeftoverKind, TeardownAccount
from trainium_core.teardown.scope import Scope
from trainium_core.teardown.step import Progress, count
from trainium_runtime.errors import RequestRefusedError

LEFTOVER_KINDS: Sequence[LeftoverKind] = get_args(LeftoverKind)


@dataclass
class DeleteLeftovers:
    """Deletes what carries the cluster's tag and is in no stack; one refusal does not keep the others."""

    account: TeardownAccount
    scope: Scope
    kind: LeftoverKind
    refused: dict[str, str] = field(default_factory=dict[str, str], init=False)
    deleted: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        return f"{self.kind}s"

    def advance(self) -> Progress:
        left = [one for one in ours(self.account, self.scope, self.kind) if one.resource_id not in self.refused]
        for one in left:
            try:
                self.account.delete_leftover(one)
                self.deleted += 1
            except RequestRefusedError as error:
                self.refused[one.resource_id] = str(error)
        if left:
            return Progress(state="waiting", message=f"{count(self.deleted, self.kind)} deleted")
        if self.refused:
            message = "; ".join(f"{resource_id}: {reason}" for resource_id, reason in self.refused.items())
            self.refused.clear()  # whoever begins this step again wants another attempt
            return Progress(state="stuck", message=message)
        return Progress(
            state="done", message=f"{count(self.deleted, self.kind)} deleted" if self.deleted else "none left"
        )


def ours(account: TeardownAccount, scope: Scope, kind: LeftoverKind) -> Sequence[Leftover]:
    """What there is of a kind that belongs to the cluster, and to no stack."""
    found = account.candidates(kind, cluster=scope.cluster, stack_names=scope.stack_names)
    return [one for one in found if scope.owns(one) and account.stack_that_has(one.resource_id) is None]
