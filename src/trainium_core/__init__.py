"""What a Trainium cluster is and needs: the catalogue, the plan and its projections."""

from typing import TYPE_CHECKING

from trainium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from trainium_core.catalog.catalog import Catalog, builtin_catalog, load_catalog
    from trainium_core.catalog.file import CatalogError
    from trainium_core.catalog.instance_type import InstanceType
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
    **dict.fromkeys(["Catalog", "builtin_catalog", "load_catalog"], "catalog.catalog"),
    "CatalogError": "catalog.file",
    "InstanceType": "catalog.instance_type",
    "Plan": "plan",
    "PlanError": "problems",
    "Problem": "problems",
}

# A command that reads no plan, such as trn explain, need not wait until all of the plan is imported.
__getattr__ = lazy_names(__name__, _MODULES)
