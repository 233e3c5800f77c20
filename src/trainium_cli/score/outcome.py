"""What became of one deployment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

NO_ANSWER = (ClientError, BotoCoreError, ResponseParserError)
"""What boto3 raises when a service refuses, breaks off, or answers with a page."""

KEPT = ("Retain", "RetainExceptOnCreate", "Snapshot")


class FailedError(Exception):
    """A deployment did not come where it should have; the message says why."""


@dataclass(kw_only=True)
class Outcome:
    """deployed, updated, deleted: how far it came. refused: a wrong deployment, with the right reason.

    kept: physical ids of what the templates want to be kept. left_behind: what is there afterwards and was not before,
    but for that. internal_errors: answers with status 500. resources: how many the stacks list, stored: those of types
    behind which there is no service. reason: what went wrong first.
    """

    name: str
    deployed: bool = False
    updated: bool = False
    deleted: bool = False
    refused: bool = False
    kept: list[str] = field(default_factory=list[str])
    left_behind: list[str] = field(default_factory=list[str])
    internal_errors: int = 0
    resources: int = 0
    stored: int = 0
    seconds: float = 0
    reason: str = ""

    @property
    def clean(self) -> bool:
        """Whether everything went as it should have."""
        through = self.deployed and self.updated and self.deleted and not self.left_behind
        return (self.refused or through) and not self.internal_errors

    def count(
        self, document: Mapping[str, Any], listed: Iterable[Mapping[str, Any]], created: frozenset[str] | None
    ) -> None:
        """Count the resources that the stack of a template lists. Raises FailedError if it lacks one of the template.

        created: the types that have a service behind them, None for all. Resources under a condition or in a loop may
        be lacking: whether they should be there is for the stack itself to show.
        """
        ids: dict[str, str] = {}
        for one in listed:
            ids[one["LogicalResourceId"]] = one.get("PhysicalResourceId", "")
            self.resources += 1
            self.stored += created is not None and one["ResourceType"] not in created
        wanted: dict[str, Mapping[str, Any]] = {
            name: resource for name, resource in document["Resources"].items() if not name.startswith("Fn::")
        }
        self.kept += [ids[name] for name, one in wanted.items() if ids.get(name) and one.get("DeletionPolicy") in KEPT]
        missing = sorted(name for name, one in wanted.items() if name not in ids and "Condition" not in one)
        if missing:
            raise FailedError(f"complete without {', '.join(missing)}")
