"""What a stack, its functions and its nodes have said, as AWS keeps it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class SupportAccount(Protocol):
    """Every question raises UnavailableError when it gets no answer."""

    def stack_history(self, stack: str) -> Sequence[Mapping[str, Any]]:
        """The newest events of a stack, newest first; of the last of that name when it was deleted."""
        ...

    def functions_logs(self, stack: str) -> Mapping[str, str]:
        """The end of what each log group of a stack holds, by its name."""
        ...

    def node_logs(self, stack: str) -> Mapping[str, str]:
        """The end of the log that each node has stored, by instance id."""
        ...

    def scaling_activities(self, stack: str) -> Sequence[Mapping[str, Any]]:
        """What Auto Scaling has done lately in the group of a stack, newest first."""
        ...

    def consoles(self, instance_ids: Sequence[str]) -> Mapping[str, str]:
        """The end of the console of each instance; of one that EC2 does not know any more, why there is none."""
        ...
