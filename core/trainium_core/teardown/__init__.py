"""Taking a cluster down: what belongs to it, in which order it goes, and what stays."""

from trainium_core.teardown.run import Outcome, take_down, verdict
from trainium_core.teardown.scope import Scope, find_scope

__all__ = ["Outcome", "Scope", "find_scope", "take_down", "verdict"]
