"""Reads the events of a stack from CloudFormation."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from trainium_core.stacks.events import StackEvent
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


class AwsStackEvents(AwsService):
    """Implements trainium_core.stacks.events.StackEvents."""

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        with read_errors("cloudformation:DescribeStackEvents", absent=("does not exist",)):
            new = takewhile(lambda event: event["EventId"] != after, self._newest_first(stack))
            return [_event(entry) for entry in new][::-1]
        return []

    def last_event(self, stack: str) -> str | None:
        with read_errors("cloudformation:DescribeStackEvents", absent=("does not exist",)):
            newest = next(self._newest_first(stack), None)
            return newest["EventId"] if newest else None
        return None

    def _newest_first(self, stack: str) -> Iterator[Mapping[str, Any]]:
        pages = self.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
        return (event for page in pages for event in page["StackEvents"])


def _event(entry: Mapping[str, Any]) -> StackEvent:
    return StackEvent(
        kind=entry["ResourceType"],
        logical_id=entry["LogicalResourceId"],
        status=entry["ResourceStatus"],
        reason=entry.get("ResourceStatusReason", ""),
        of_stack=entry.get("PhysicalResourceId") == entry["StackId"],
        time=entry.get("Timestamp"),
    )
