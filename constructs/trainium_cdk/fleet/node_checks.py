"""The choice of which failed checks fail a node."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainium_cdk.checks import check, form
from trainium_core.plan.settings.node import Verification


@dataclass(frozen=True)
class NodeChecks:
    """Which failed checks fail a node: `enforce()` or `observe()`.

    Attributes:
        verification: `enforce` or `observe`.
        suppress: Names of checks that never fail a node.

    Raises:
        PropsError: A value is invalid.

    Example:

        first = NodeChecks.observe()
        later = NodeChecks.enforce(suppress=["nofile"])
    """

    verification: Verification
    suppress: tuple[str, ...]

    def __post_init__(self) -> None:
        suppressed = form("suppress_checks", self.suppress, field="suppress")
        check("NodeChecks", form("verification", self.verification), suppressed)

    @staticmethod
    def enforce(*, suppress: Sequence[str] = ()) -> "NodeChecks":
        """Every failed check that jobs depend on fails a node.

        Args:
            suppress: Names of checks that never fail a node. Default: none.

        Raises:
            PropsError: A name is not that of a check.
        """
        return NodeChecks("enforce", tuple(suppress))

    @staticmethod
    def observe(*, suppress: Sequence[str] = ()) -> "NodeChecks":
        """Only missing devices, missing cores and wrong results fail a node; other failed checks are warnings.

        Args:
            suppress: Names of checks that never fail a node. Default: none.

        Raises:
            PropsError: A name is not that of a check.
        """
        return NodeChecks("observe", tuple(suppress))
