"""The SageMaker quotas of the embedded AWS: sagemaker_quotas.toml. Imports no moto."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from trainium_core.facts import facts


@dataclass(frozen=True, kw_only=True)
class SageMakerQuota:
    """A limit. `is_applied`: false where the account has AWS's default and nothing else."""

    code: str
    name: str
    default: float
    is_applied: bool


@cache
def sagemaker_quotas() -> tuple[SageMakerQuota, ...]:
    tables = tomllib.loads((files("trainium_local.seeds") / "sagemaker_quotas.toml").read_text())
    codes: dict[str, str] = dict(facts()["sagemaker_quotas"]["codes"])
    for table in tables.values():
        codes |= table.get("codes", {})
    return tuple(
        SageMakerQuota(code=codes[name], name=name, default=float(default), is_applied=kind != "invented")
        for kind, table in tables.items()
        for name, default in table["defaults"].items()
    )
