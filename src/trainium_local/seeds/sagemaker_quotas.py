"""The SageMaker quotas of the embedded AWS: sagemaker_quotas.toml. Does not import moto."""

from dataclasses import dataclass
from functools import cache

from trainium_core.facts import facts
from trainium_local.seeds import table


@dataclass(frozen=True, kw_only=True)
class SageMakerQuota:
    """A quota.

    Attributes:
        code: Quota code.
        name: Quota name.
        default: AWS's default.
        is_applied: Whether the account has an applied value, which equals the default.
    """

    code: str
    name: str
    default: float
    is_applied: bool


@cache
def sagemaker_quotas() -> tuple[SageMakerQuota, ...]:
    tables = table("sagemaker_quotas")
    codes: dict[str, str] = dict(facts()["sagemaker_quotas"]["codes"])
    for rows in tables.values():
        codes |= rows.get("codes", {})
    return tuple(
        SageMakerQuota(code=codes[name], name=name, default=float(default), is_applied=kind != "invented")
        for kind, rows in tables.items()
        for name, default in rows["defaults"].items()
    )
