"""The outcome of one check."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple


class Check(NamedTuple):
    """complaint: the sentence that says what is wrong; empty for a check that could not be made.

    may_heal: whether it may come right when the driver is loaded anew.
    """

    name: str
    expected: str
    found: str
    ok: bool
    complaint: str = ""
    may_heal: bool = False

    def counted(self, suppressed: Collection[str]) -> Check:
        """As it counts: what goes wrong with a suppressed check is shown alone."""
        if self.ok or self.name not in suppressed:
            return self
        return self._replace(ok=True, found=f"{self.found} (suppressed)", complaint="")

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "expected": self.expected, "found": self.found, "ok": self.ok}


def check(name: str, expected: str, found: str, complaint: str) -> Check:
    """Compares the texts."""
    return Check(name, expected, found, found == expected, complaint)


def not_made(name: str, why: str) -> Check:
    return Check(name, "to be checked", f"not checked: {why}", False)
