"""The outcome of one check."""

from __future__ import annotations

from typing import Any, NamedTuple

DECISIVE = ("neuron-devices", "neuron-cores", "gpus")
"""The checks that fail a node even if it is only observed. Wrong results of computations fail it as well."""

HOST, CONTAINER = "host", "container"
"""The scopes of a plan on EKS: the checks of the host before kubelet starts, and those of a pod in the image of jobs.
Without a scope, all checks run."""


class Check(NamedTuple):
    """The outcome of one check.

    Attributes:
        name: Name of the check.
        expected: The value that the plan requires.
        found: The value on the node.
        ok: Whether the node passes the check, perhaps with a warning.
        problem: A sentence for a check that is not ok; empty if another problem prevents the check.
        may_heal: Whether reloading the driver may solve the problem.
        warning: A sentence on a problem that does not fail the node.
        wrong_numbers: Whether a computed result was wrong.
        bandwidth: In GB/s, if measured.
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
        """Whether there is neither a problem nor a warning."""
        return self.ok and not self.warning

    def warned(self) -> Check:
        """The same finding as a warning."""
        return self._replace(ok=True, problem="", warning=self.problem or f"{self.name}: {self.found}")

    def counted(self, plan: dict[str, Any]) -> Check:
        """The check that counts: a suppressed problem is only shown, and most problems of an observed node are
        warnings."""
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
    """A check that is ok if both texts are equal."""
    return Check(name, expected, found, found == expected, problem)


def not_checked(name: str, why: str) -> Check:
    return Check(name, "to be checked", f"not checked: {why}", False)
