"""A training job as rows for people and as JSON for programs."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from trainium_cli.quantities import duration, size
from trainium_core.costs.estimate import Estimate
from trainium_core.engines.sagemaker.jobs.cost import cost_words
from trainium_core.engines.sagemaker.jobs.job import TrainingJob, sagemaker_type
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, LogLine
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan


def job_rows(plan: Plan, job: TrainingJob, package: SourcePackage, estimated: Estimate) -> list[tuple[str, str]]:
    """What is about to be started, and what it costs."""
    rows = [
        ("job", job.name),
        ("instances", f"{plan.nodes} x {sagemaker_type(plan.instance_type)} in {plan.region}, {_bought(plan, job)}"),
        ("script", shlex.join([job.script, *job.arguments, *_as_arguments(job)])),
        ("source", f"{_files(package)}, {size(package.unpacked_bytes)}, packed {size(len(package.archive))}"),
        ("image", job.image),
        ("role", job.role_arn),
        ("output", job.output_url),
        ("checkpoints", job.checkpoint_url or "none"),
        ("cache", job.cache_url or "none"),
        ("network", ", ".join([*job.subnet_ids, *job.security_group_ids]) or "SageMaker's own"),
        ("time", _time(plan, job)),
    ]
    return [*rows, ("cost", _cost(job, estimated))]


def _as_arguments(job: TrainingJob) -> Iterator[str]:
    for name, value in job.hyperparameters.items():
        yield from (f"--{name}", value)


def _bought(plan: Plan, job: TrainingJob) -> str:
    if job.training_plan_arn is not None:
        return f"in {job.training_plan_arn}"
    return "spot" if job.on_spot(plan) else "on demand"


def _time(plan: Plan, job: TrainingJob) -> str:
    message = f"stopped after {job.max_hours:g} h"
    if job.on_spot(plan):
        message += f", after {job.effective_max_wait_hours:g} h with waiting"
    if job.warm_pool_minutes:
        message += f"; the instances stay {job.warm_pool_minutes} min for a next job"
    return message


def _files(package: SourcePackage) -> str:
    count = len(package.names)
    return "1 file" if count == 1 else f"{count} files"


def _cost(job: TrainingJob, estimated: Estimate) -> str:
    sources = {f"{line.price.source}, {line.price.date}" for line in estimated.lines if line.price}
    return "; ".join(
        [
            cost_words(job, estimated),
            *sources,
            *(f"AWS's prices are unavailable: {reason}" for reason in estimated.unavailable),
        ]
    )


def state_rows(state: JobState) -> list[tuple[str, str]]:
    """The state of a job; what AWS does not return is left out."""
    rows = [
        ("job", state.name),
        ("status", f"{state.status}, {state.stage}"),
        ("message", state.message),
        ("reason", state.reason),
        ("instances", f"{state.instances} x {state.instance_type}" if state.instances else ""),
        ("created", _moment(state.created)),
        ("started", _moment(state.started)),
        ("ended", _moment(state.ended)),
        ("billed", _billed(state)),
        ("warm pool", state.warm_pool or ""),
        ("model", state.model_url if state.model_url and state.is_completed else ""),
        ("checkpoints", state.checkpoint_url or ""),
    ]
    return [(label, value) for label, value in rows if value]


def state_as_json(state: JobState) -> dict[str, Any]:
    return asdict(state)


def state_line(state: JobState) -> str:
    """One line for a change of state, with the time that the job has been there."""
    age = lasted(state.created, None) if state.created else "new"
    return f"[{age}] {state.status}, {state.stage}" + (f": {state.message}" if state.message else "")


def log_text(line: LogLine, *, nodes: int) -> str:
    """A line of the log, with the node that wrote it where there are several."""
    return f"{line.node} | {line.text}" if nodes > 1 else line.text


def lasted(begin: datetime, end: datetime | None) -> str:
    return duration(((end or datetime.now(UTC)) - begin).total_seconds())


def _moment(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S %Z}".rstrip() if when else ""


def _billed(state: JobState) -> str:
    if state.billable_seconds is None:
        return ""
    return f"{state.billable_seconds} s of each instance"
