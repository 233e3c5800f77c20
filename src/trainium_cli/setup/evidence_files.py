"""The files of `trn pilot`, `trn bench` and `trn tco` for a plan, which `trn init --evidence` writes."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_core.costs.estimate import estimate
from trainium_core.plan import Plan
from trainium_core.plan.context import plan_from_file

_NAMES = ("pilot.toml", "bench.toml", "tco.toml")
_JOBS = ("job/job.toml", "job.toml")
_GPU_PLAN = "gpu/cdk.json"
_HOURS = 8


def write_evidence_files(folder: Path) -> Sequence[str]:
    """Write the files that the folder lacks, and return their names.

    Raises:
        CliError: The folder has no plan of Trainium nodes, or no job.
        PlanError: A plan is not valid.
    """
    values = _values(folder)
    templates = files("trainium_cli.setup") / "project"
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    written = [name for name in _NAMES if not (folder / name).exists()]
    for name in written:
        template = environment.from_string((templates / f"{name}.j2").read_text(encoding="utf-8"))
        (folder / name).write_text(template.render(values), encoding="utf-8")
    return written


def _values(folder: Path) -> Mapping[str, Any]:
    if not (folder / "cdk.json").exists():
        raise CliError(f"{folder} has no cdk.json. Run `trn init` without --evidence first.", ExitCode.BAD_INPUT)
    plan = plan_from_file(folder / "cdk.json", ())
    if plan.type.is_gpu:
        raise CliError(f"The plan in {folder} has {plan.instance_type}, which is a GPU type.", ExitCode.BAD_INPUT)
    job = next((name for name in _JOBS if (folder / name).exists()), None)
    if job is None:
        raise CliError(f"{folder} has no job: write a job file, {' or '.join(_JOBS)}.", ExitCode.BAD_INPUT)
    gpu = plan_from_file(folder / _GPU_PLAN, ()) if (folder / _GPU_PLAN).exists() else None
    cost = _cost([plan, gpu] if gpu else [plan])
    return {
        "name": plan.cluster_name,
        "job": job,
        "code": str(Path(job).parent),
        "hours": _HOURS,
        "cost": "" if cost is None else f"{cost:.0f} USD",
        "budget": None if cost is None else math.ceil(cost * 1.25),
        "nodes": plan.nodes,
        "type": plan.instance_type,
        "region": plan.region,
        "accelerators": plan.type.devices * plan.nodes,
        "gpu": gpu,
        "sides": [
            {"name": "trainium", "plan": "cdk.json"},
            *([{"name": "gpu", "plan": _GPU_PLAN}] if gpu else []),
        ],
        "today": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def _cost(plans: Sequence[Plan]) -> float | None:
    """The list price of all clusters for _HOURS; None if a price is unknown."""
    hourly = [estimate(plan, aws=None).running_hour for plan in plans]
    if any(total.unknown for total in hourly):
        return None
    return float(sum(total.usd for total in hourly)) * _HOURS
