"""Reads the events of a stack from CloudFormation."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from trainium_core.stacks.aws_stacks import AwsStackReader
from trainium_core.stacks.events import StackEvent


class AwsStackEvents(AwsStackReader):
    """Implements trainium_core.stacks.events.StackEvents."""

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        new = takewhile(lambda event: event["EventId"] != after, self.newest_events(stack))
        return [_event(entry) for entry in new][::-1]

    def last_event(self, stack: str) -> str | None:
        newest = next(self.newest_events(stack), None)
        return newest["EventId"] if newest else None


def _event(entry: Mapping[str, Any]) -> StackEvent:
    return StackEvent(
        kind=entry["ResourceType"],
        logical_id=entry["LogicalResourceId"],
        status=entry["ResourceStatus"],
        reason=entry.get("ResourceStatusReason", ""),
        of_stack=entry.get("PhysicalResourceId") == entry["StackId"],
        time=entry.get("Timestamp"),
    )
