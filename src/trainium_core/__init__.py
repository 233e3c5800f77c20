"""The Trainium cluster: catalogue, plan, and everything that derives from the plan."""

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
