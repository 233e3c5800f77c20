"""Taking a cluster down: what belongs to it, in which order it goes, and what stays."""

from trainium_core.teardown.run import Outcome, take_down, verdict
from trainium_core.teardown.scope import Scope, scope_of

__all__ = ["Outcome", "Scope", "scope_of", "take_down", "verdict"]
