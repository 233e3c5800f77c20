"""The report on a compile cache, for the caller."""

from __future__ import annotations

from collections.abc import Callable

from trn_node.s3 import S3Error

MAX_SHOWN = 20
"""Maximum number of texts of each kind that are printed and kept. The job's record has fewer."""


class Report:
    """What happened to the entries: the first MAX_SHOWN texts of each kind.

    Args:
        say: Writes a line of text.

    Attributes:
        removed: Unfinished entries and other files that were removed before the run, with the reasons.
        warnings: Texts of warnings, each once.
        fetched, stored, renewed: Numbers of entries.
        fetched_bytes, stored_bytes: Sizes in bytes.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._failing: dict[str, str] = {}
        self.removed: list[str] = []
        self.warnings: list[str] = []
        self.fetched = self.fetched_bytes = self.stored = self.stored_bytes = self.renewed = 0

    def remove(self, name: str, why: str) -> None:
        self._add(self.removed, f"{name}: {why}", "removed, left by an earlier run")

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self._add(self.warnings, text, "warning")

    def fail(self, what: str, error: OSError) -> None:
        """Warn that an operation failed, once for consecutive equal reasons, regardless of the entry."""
        reason = _reason(error)
        if self._failing.get(what) != reason:
            self._failing[what] = reason
            self.warn(f"{what}: {error}")

    def succeed(self, what: str) -> None:
        """Report that an operation succeeded, if it had failed before."""
        if self._failing.pop(what, None):
            self._say(f"compile cache: resolved: {what}")

    def _add(self, texts: list[str], text: str, what: str) -> None:
        if len(texts) < MAX_SHOWN:
            texts.append(text)
            self._say(f"compile cache: {what}: {text}")


def _reason(error: OSError) -> str:
    """What S3 answered, or the end of the message: without the URL of the request."""
    return f"{error.status} {error.code}" if isinstance(error, S3Error) else str(error).rpartition(": ")[2]
