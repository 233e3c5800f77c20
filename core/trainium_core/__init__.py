"""What a Trainium cluster is and needs: the catalogue, the plan and its projections."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainium_core.catalog.catalog import Catalog, CatalogError, InstanceType, builtin_catalog, load_catalog
    from trainium_core.plan import Plan
    from trainium_core.problems import PlanError, Problem

__all__ = [
    "Catalog",
    "CatalogError",
    "InstanceType",
    "Plan",
    "PlanError",
    "Problem",
    "builtin_catalog",
    "load_catalog",
]

_MODULES = {
    **dict.fromkeys(["Catalog", "CatalogError", "InstanceType", "builtin_catalog", "load_catalog"], "catalog.catalog"),
    "Plan": "plan",
    "PlanError": "problems",
    "Problem": "problems",
}


def __getattr__(name: str) -> Any:
    # A command that reads no plan, such as trn explain, need not wait until all of the plan is imported.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
