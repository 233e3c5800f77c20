"""The EC2 quotas of the embedded AWS: vcpu_quotas.toml, and the values chosen at start. Does not import moto."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from trainium_core.facts import facts
from trainium_local.seeds import table
from trainium_runtime.quota_need import is_in_family


@dataclass(frozen=True, kw_only=True)
class VcpuQuota:
    """A vCPU quota of instance families.

    Attributes:
        code: Quota code.
        name: Quota name.
        market: `on-demand` or `spot`.
        families: Instance families, such as trn, or generations, such as p5.
        default: AWS's default.
        applied: The value of this account.
    """

    code: str
    name: str
    market: str
    families: tuple[str, ...]
    default: float
    applied: float


_chosen: dict[str, float] = {}


def choose(values: Mapping[str, float]) -> None:
    """Use these applied values instead of the seeded ones until this process ends."""
    _chosen.clear()
    _chosen.update(values)


def vcpu_quotas() -> tuple[VcpuQuota, ...]:
    """Return every quota with its applied value."""
    return tuple(replace(quota, applied=_chosen.get(quota.code, quota.applied)) for quota in seeded_quotas())


def quota_for(instance_type: str, market: str) -> VcpuQuota | None:
    """Return the quota that applies to a launch, or None if the embedded AWS has none."""
    of_market = [quota for quota in vcpu_quotas() if quota.market == market]
    return next(
        (quota for quota in of_market if any(is_in_family(family, instance_type) for family in quota.families)), None
    )


@cache
def seeded_quotas() -> tuple[VcpuQuota, ...]:
    """Return the quotas of vcpu_quotas.toml. Codes and names that plans need are in facts.toml."""
    names = facts()["quotas"]
    return tuple(
        VcpuQuota(
            code=row.get("code") or names[family][market]["code"],
            name=row.get("name") or names[family][market]["name"],
            market=market,
            families=tuple(row["families"]),
            default=float(row["default"]),
            applied=float(row["applied"]),
        )
        for family, markets in table("vcpu_quotas").items()
        for market, row in markets.items()
    )
