"""What AWS bills a cluster for, from data/price_products.toml: units, and how the AWS Price List API names each."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from trainium_core.facts import DATA


@dataclass(frozen=True, kw_only=True)
class Product:
    """Something with a price for each `unit`: an hour, a GB, a GB-month, a GiBps-mo or an alarm-month.

    One price for each instance type, or one for all.

    `service`, `usage_type` and `filters` ask the Price List API for it, with {region} and {instance_type} to be filled
    in; without a service the Price List does not hold it, or nobody knows how to ask.
    """

    name: str
    unit: str
    of_instance_type: bool = False
    service: str | None = None
    usage_type: str = ""
    filters: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def products() -> Mapping[str, Product]:
    """Every product by its key, as the file has them."""
    document: Mapping[str, Any] = tomllib.loads((DATA / "price_products.toml").read_text(encoding="utf-8"))
    return {key: Product(**cast(dict[str, Any], row)) for key, row in document.items() if isinstance(row, dict)}
