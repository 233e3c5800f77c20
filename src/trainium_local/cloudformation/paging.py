"""Answers in pages. NextToken names the last entry that was given, so that it holds while others come and go."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from trainium_local.cloudformation.errors import ValidationError

#: Entries of a page: what the API reference says of ListExports and DescribeStackResourceDrifts. For the other actions
#: it names 1 MB only. https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference, 2026-11.
PAGE_SIZE = 100

#: What tells entries apart; the first that they have.
_IDENTITIES = ("EventId", "LogicalResourceId", "ResourceChange", "ChangeSetId", "StackId", "Name")


def page(entries: Sequence[Any], token: str | None, size: int | None = None) -> tuple[Sequence[Any], str | None]:
    """The page after `token`, and the token of the next. Raises ValidationError for a token that no page gave."""
    names = [_name(entry) for entry in entries]
    start = 0
    if token:
        try:
            position, name = urlsafe_b64decode(token).decode().split(" ", 1)
            # one that is gone has left its place to the next
            start = names.index(name) + 1 if name in names else int(position) - 1
        except ValueError as error:
            raise ValidationError(f"Token [{token}] is not valid") from error
    end = start + min(size or PAGE_SIZE, PAGE_SIZE)
    following = urlsafe_b64encode(f"{end} {names[end - 1]}".encode()).decode() if end < len(entries) else None
    return entries[start:end], following


def _name(entry: Any) -> str:
    named = next((one for one in _IDENTITIES if one in entry), None) if isinstance(entry, dict) else None
    return str(entry[named] if named else entry)
