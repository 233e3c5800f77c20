"""Why a deployment failed, with the original error messages, and what to do next."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainium_core.explanations.known_errors import explain_log
from trainium_core.stacks.events import StackEvent

_CANCELLED = re.compile("cancelled", re.IGNORECASE)
_REQUEST = re.compile(
    r"Received response status \[FAILED\] from custom resource\. Message returned: (?P<message>.*?)"
    r"( See the details in CloudWatch Log Stream.*)?( ?\(RequestId:.*\))?$",
    re.DOTALL,
)
"""The text that CloudFormation puts around the message of a custom resource, such as the readiness of the fleet."""

_NO_CAPACITY = "insufficient capacity"
_DEFAULT_ADVICE = "run `trn preflight`, fix its findings, and run `trn deploy` again"

_STATES: Mapping[str, str] = {
    "ROLLBACK_COMPLETE": "all created resources were deleted, except retained ones; nothing runs",
    "UPDATE_ROLLBACK_COMPLETE": "the stack is as it was before the deployment",
    "ROLLBACK_FAILED": "some created resources could not be deleted, and may be billed",
    "CREATE_FAILED": "the created resources still exist and are billed",
    "UPDATE_ROLLBACK_FAILED": "some resources could not be restored to their state before the deployment",
    "": "unknown: the events of the stack do not show it",
}
_REQUIRED_FIRST: Mapping[str, str] = {
    "ROLLBACK_FAILED": "run `trn destroy`",
    "CREATE_FAILED": "run `cdk rollback` or `trn destroy`",
    "UPDATE_FAILED": "run `cdk rollback` or `trn destroy`",
    "UPDATE_ROLLBACK_FAILED": "run `cdk rollback` or `trn destroy`",
}
"""What a state requires before the stack can be deployed again."""


@dataclass(frozen=True, kw_only=True)
class DeploymentFailure:
    """Why a deployment failed.

    Attributes:
        reasons: The original errors.
        state: The state of the stack after the deployment, in words.
        advice: What to do next.
        cause: The cause that `trn explain` shows for the reasons; empty for unknown errors.
        lacks_capacity: Whether the cause is that AWS has no free instances.
    """

    reasons: tuple[str, ...]
    state: str
    advice: str
    cause: str = ""
    lacks_capacity: bool = False

    @property
    def text(self) -> str:
        """Reasons, cause, state and advice, in lines."""
        reasons = "\n".join(f"  {reason}" for reason in self.reasons)
        return f"{reasons}\n{self.summary}"

    @property
    def summary(self) -> str:
        """Cause, state and advice, in lines."""
        cause = f"Cause: {self.cause}.\n" if self.cause else ""
        return f"{cause}State: {self.state}.\nNext:  {self.advice}."


def deployment_failure(events: Sequence[StackEvent]) -> DeploymentFailure | None:
    """The failure in the events of one deployment; None if they contain none.

    Args:
        events: The events, oldest first.
    """
    failed = [event for event in events if event.status.endswith("_FAILED") and not event.of_stack]
    causes = [event for event in failed if event.reason and not _CANCELLED.search(event.reason)]
    of_stack = [event for event in events if event.of_stack]
    if not causes:
        of_rollback = [event.reason for event in of_stack if "ROLLBACK_IN_PROGRESS" in event.status and event.reason]
        if not of_rollback:
            return None
        reasons = tuple(of_rollback)
    else:
        reasons = tuple(dict.fromkeys(f"{event.logical_id} ({event.kind}): {_message(event)}" for event in causes))
    status = of_stack[-1].status if of_stack else ""
    known = explain_log([" ".join(reasons)])
    fix = known.error.fix if known else _DEFAULT_ADVICE
    return DeploymentFailure(
        reasons=reasons,
        state=_STATES.get(status, f"the stack is in {status}"),
        advice=f"first {_REQUIRED_FIRST[status]}; then {fix}" if status in _REQUIRED_FIRST else fix,
        cause=known.cause if known else "",
        lacks_capacity=known is not None and known.error.name == _NO_CAPACITY,
    )


def _message(event: StackEvent) -> str:
    wrapped = _REQUEST.match(event.reason)
    return wrapped["message"].strip() if wrapped else event.reason
