"""The GPU plan to compare a Trainium plan with: which type, why, and which settings differ."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainium_core.facts import DATA
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import GROUP_OF
from trainium_core.problems import nearest

_OTHER_STACKS = {*CONSTRUCT_IDS} - {"cluster"}
"""Groups of settings for stacks that a GPU plan does not use."""

_OF_TRAINIUM = {
    "ami": "the image is for Neuron devices",
    "ami_parameter": "the image is for Neuron devices",
    "root_device_name": "it is for the image of the Trainium cluster",
    "reservation_id": "a reservation is for one instance type",
    "availability_zone_id": "the GPU type may be offered in other zones",
    "logical_neuroncore_config": "GPUs have no NeuronCores",
    "neuron_software": "the GPU image contains the GPU driver",
    "suppress_checks": "GPU nodes have other checks",
    "placement_group": "the group is for the Trainium cluster",
    "node_generation": "it replaces the nodes of the Trainium cluster",
    "project_id": "the folder of the GPU cluster is another project",
    "stacks": "only the cluster stack supports GPU types",
}
"""Settings of a Trainium plan that a GPU plan omits, with the reason."""

_FILES = ("setup_script", "catalog", "prices")
_SUFFIX = "-gpu"
_LONGEST_NAME = 32


class BaselineError(Exception):
    """There is no GPU plan to compare with. The message is the reason, a sentence without a period."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A GPU plan to compare with a Trainium plan.

    Attributes:
        plan: The GPU plan.
        settings: Its settings as in cdk.json, without their prefix.
        why: The reason for its instance type.
        skipped: Preferred types that were not chosen, each with the reason.
        left_out: Omitted settings of the Trainium plan, each with the reason.
        notes: Settings that differ, and what to check before the deployment.
    """

    plan: Plan
    settings: Mapping[str, Any]
    why: str
    skipped: Mapping[str, str]
    left_out: Mapping[str, str]
    notes: tuple[str, ...]


@cache
def pairs() -> Mapping[str, Mapping[str, Any]]:
    """GPU types by Trainium type, with reason, source and date."""
    return tomllib.loads((DATA / "baselines.toml").read_text(encoding="utf-8"))


def candidates(plan: Plan) -> tuple[str, ...]:
    """The GPU types to compare with that the region of a plan offers, in order of preference."""
    row = pairs().get(plan.instance_type)
    types: Sequence[str] = row["types"] if row else ()
    return tuple(name for name in types if plan.region in plan.catalog[name].zones)


def baseline(
    plan: Plan,
    stated: Mapping[str, Any],
    folder: Path,
    *,
    priced: Collection[str],
    chosen: str | None = None,
) -> Baseline:
    """The GPU plan to compare with a Trainium plan.

    Args:
        plan: The Trainium plan.
        stated: Its settings as in cdk.json, without their prefix.
        folder: The folder that paths in the settings are relative to.
        priced: The candidates whose price in the region is known. Without a price, nothing can be compared.
        chosen: The GPU type, which may have no known price. Default: the most preferred type of `priced`.

    Raises:
        BaselineError: The plan already has GPUs, no type fits, or `chosen` does not.
        PlanError: The settings of the Trainium plan are invalid for the GPU type.
    """
    if plan.type.is_gpu:
        raise BaselineError(f"{plan.instance_type} has GPUs: name the plan of the Trainium cluster")
    name, why, skipped = _given_type(plan, chosen) if chosen else _preferred_type(plan, priced)
    kind = plan.catalog[name]
    left_out = {key: why_not for key, why_not in _OF_TRAINIUM.items() if key in stated}
    left_out |= {key: "it is for other stacks" for key in stated if GROUP_OF.get(key) in _OTHER_STACKS}
    left_out |= {key: "a GPU cluster has no compile cache" for key in stated if GROUP_OF.get(key) == "cache"}
    settings = {key: value for key, value in stated.items() if key not in left_out}
    settings |= {key: str((folder / str(settings[key])).resolve()) for key in _FILES if key in settings}
    settings |= {"instance_type": name, "cluster_name": _name(plan.cluster_name)}
    if "secondary_interface_type" in settings and kind.efa_interfaces < 2:
        left_out["secondary_interface_type"] = f"{name} has one network card"
        del settings["secondary_interface_type"]
    notes: list[str] = []
    capacity = plan.capacity if plan.capacity in ("on-demand", "spot") else "on-demand"
    if capacity != plan.capacity:
        settings["capacity"] = capacity
        notes.append(f"bought on demand: a {plan.capacity} is for one instance type, see `trn capacity`")
    if plan.nodes > 1 and not kind.efa_interfaces:
        settings["nodes"] = 1
        notes.append(f"one node: {name} has no EFA, and cannot train across nodes")
    if plan.network.subnet_id is not None:
        notes.append(f"the zone of {plan.network.subnet_id} must offer {name}: `trn preflight` checks it")
    if plan.setup_script is not None:
        notes.append("the setup script is the same: check that it works on a GPU image")
    gpu_plan = Plan.from_settings(settings, folder)
    return Baseline(plan=gpu_plan, settings=settings, why=why, skipped=skipped, left_out=left_out, notes=tuple(notes))


def _preferred_type(plan: Plan, priced: Collection[str]) -> tuple[str, str, Mapping[str, str]]:
    row = pairs().get(plan.instance_type)
    if row is None:
        raise BaselineError(f"no GPU type is listed for comparison with {plan.instance_type}: specify one with --type")
    skipped: dict[str, str] = {}
    for name in row["types"]:
        if name in priced:
            return name, f"{row['why']} ({row['source']}, {row['date']})", skipped
        is_offered = name in candidates(plan)
        skipped[name] = f"its price in {plan.region} is unknown" if is_offered else f"{plan.region} does not offer it"
    if unpriced := candidates(plan):
        raise BaselineError(
            f"the price of {', '.join(unpriced)} in {plan.region} is unknown: specify it in a file (trn:prices), or "
            "name the type with --type"
        )
    both = sorted({*plan.type.zones} & {region for name in row["types"] for region in plan.catalog[name].zones})
    elsewhere = f"regions that offer one of them and {plan.instance_type}: {', '.join(both) or 'none'}"
    raise BaselineError(f"{plan.region} offers none of {', '.join(row['types'])}; {elsewhere}")


def _given_type(plan: Plan, name: str) -> tuple[str, str, Mapping[str, str]]:
    gpus = [kind.name for kind in plan.catalog.values() if kind.is_gpu]
    if name not in gpus:
        close = nearest(name, gpus)
        raise BaselineError(f"{name} is not a GPU type of the catalogue{f'; did you mean {close}?' if close else ''}")
    if plan.region not in plan.catalog[name].zones:
        regions = ", ".join(plan.catalog[name].zones) or "none"
        raise BaselineError(f"{plan.region} does not offer {name}; regions that do: {regions}")
    return name, "specified with --type", {}


def _name(cluster_name: str) -> str:
    return cluster_name[: _LONGEST_NAME - len(_SUFFIX)].rstrip("-") + _SUFFIX
