"""The outcome of one check."""

from __future__ import annotations

from typing import Any, NamedTuple

DECISIVE = ("neuron-devices", "neuron-cores", "gpus")
"""The checks that, with wrong numbers, fail a node that is only observed."""


class Check(NamedTuple):
    """problem: a sentence; empty for a check that could not be made.

    may_heal: whether reloading the driver may solve it. warning: a sentence on a problem that does not fail the node.
    wrong_numbers: whether a computed result was wrong. bandwidth: in GB/s, if measured.
    """

    name: str
    expected: str
    found: str
    ok: bool
    problem: str = ""
    may_heal: bool = False
    warning: str = ""
    wrong_numbers: bool = False
    bandwidth: float | None = None

    @property
    def settled(self) -> bool:
        """Whether there is no problem, not even a suppressed one."""
        return self.ok and not self.warning

    def warned(self) -> Check:
        """The same finding as a warning."""
        return self._replace(ok=True, problem="", warning=self.problem or f"{self.name}: {self.found}")

    def counted(self, plan: dict[str, Any]) -> Check:
        """The effective check: a suppressed problem is only shown, and on a node that is only observed most problems
        are warnings."""
        if self.ok:
            return self
        if self.name in plan["suppress_checks"]:
            return self._replace(ok=True, found=f"{self.found} (suppressed)", problem="")
        if plan.get("verification") == "observe" and not (self.name in DECISIVE or self.wrong_numbers):
            return self.warned()
        return self

    def to_json(self) -> dict[str, Any]:
        fields = {"name": self.name, "expected": self.expected, "found": self.found, "ok": self.ok}
        optional = {"warning": self.warning or None, "bandwidth": self.bandwidth}
        return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def check(name: str, expected: str, found: str, problem: str) -> Check:
    """Compares the texts."""
    return Check(name, expected, found, found == expected, problem)


def not_checked(name: str, why: str) -> Check:
    return Check(name, "to be checked", f"not checked: {why}", False)
