"""What cluster is wanted: the plan, its settings by section, the rules between them, and where they are read from."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainium_core.plan.plan import Plan
    from trainium_core.plan.values import PlanValues

__all__ = ["Plan", "PlanValues"]

_MODULES = {"Plan": "plan", "PlanValues": "values"}


def __getattr__(name: str) -> Any:
    # What needs the settings alone need not wait until all rules between them are imported.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
