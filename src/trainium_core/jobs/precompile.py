"""Jobs of `trn precompile`, which run a user's command on one host without Neuron devices."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from trainium_core.catalog.neuron_software import frameworks
from trainium_core.facts import facts
from trainium_core.jobs.job import new_job
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan
from trainium_wire.job import Job

_NAME = "precompile"
_LONGEST_NAME = 29
"""The maximum length of a job's name in the name of its precompile job."""

_LOOPBACK = "127.0.0.1"
_SAME = ("source_sha256", "setup", "stack")
_MAX_JOBS = 20


class EarlierJobs(Protocol):
    """The jobs in S3. Methods raise UnavailableError if a request fails or is denied."""

    def job_ids(self) -> Sequence[str]: ...

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None: ...


def is_precompilation(job: Job) -> bool:
    """Whether a job belongs to the precompile host, not to the nodes."""
    return job.name.startswith(f"{_NAME}-") and facts()["precompile"]["target"] in job.environment


def precompile_job(
    plan: Plan, request: JobRequest, *, script: str | None, now: datetime, source_sha256: str | None = None
) -> Job:
    """The job of the precompile host that compiles what a job of this request would compile on the plan's cluster.

    The parts of all nodes run on the one host, so that the graphs are for the same number of processes. The command
    runs unchanged, and must compile without a device. Scripts are refused. The time limit is that of the request, or
    a default, up to the maximum for a host.

    Args:
        plan, request, script, now, source_sha256: As in `new_job`.

    Raises:
        JobError: The job cannot be precompiled, or the plan has no precompile host.
    """
    job = new_job(plan, request, script=script, now=now, source_sha256=source_sha256)
    problems = [*_gpu_problems(plan)] or [*_script_problems(request, _stack(plan, job)), *_host_problems(plan)]
    if problems:
        raise JobError(problems)
    precompile = facts()["precompile"]
    generation = re.match(r"(trn|inf)[0-9]+", plan.instance_type)
    assert generation is not None, "every type with Neuron devices is trn or inf"
    limit = job.time_limit_seconds or precompile["default_minutes"] * 60
    name = f"{_NAME}-{job.name[:_LONGEST_NAME].rstrip('-')}"
    return replace(
        job,
        id=f"{name}{job.id.removeprefix(job.name)}",
        name=name,
        nodes=1,
        processes_per_node=job.nodes * job.processes_per_node,
        stack=_stack(plan, job),
        command=_command(job),
        environment={precompile["target"]: generation[0], **job.environment},
        checkpoints=None,
        resume_from=None,
        retries=0,
        retry_on_exit_codes=(),
        profile=(),
        profile_device=False,
        retry_on_hang=False,
        time_limit_seconds=min(limit, precompile["largest_minutes"] * 60),
    )


def earlier_compilation(job: Job, precompiled: Job, earlier: EarlierJobs) -> str | None:
    """The ID of an earlier job that probably compiled the same graphs; None if there is none.

    Such a job is one of the last _MAX_JOBS, succeeded or reached its first step, and has the same source, setup, stack,
    command, number of processes and environment.

    Args:
        job: The job.
        precompiled: Its precompile job.
        earlier: The earlier jobs.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    ids = sorted(earlier.job_ids(), key=_time_of, reverse=True)[:_MAX_JOBS]
    for job_id in ids:
        state = earlier.state(job_id)
        if state is not None and _is_same(state.job, job, precompiled) and _has_compiled(state):
            return job_id
    return None


def _is_same(earlier: Job, job: Job, precompiled: Job) -> bool:
    own = precompiled if earlier.name == precompiled.name else job
    processes = earlier.nodes * earlier.processes_per_node == own.nodes * own.processes_per_node
    same = all(getattr(earlier, name) == getattr(own, name) for name in _SAME)
    return processes and same and (earlier.command, earlier.environment) == (own.command, own.environment)


def _has_compiled(state: JobState) -> bool:
    if state.outcome is not None and state.outcome.is_success:
        return True
    phases = (node.phases for attempt in state.attempts for node in attempt.nodes)
    return any("first_step" in of_node for of_node in phases)


def _time_of(job_id: str) -> tuple[str, ...]:
    return tuple(job_id.rsplit("-", 2)[1:])


def _stack(plan: Plan, job: Job) -> str:
    """The software stack of the job; if it names none, the stack that the nodes select."""
    return job.stack or next(framework.stack for framework in frameworks().values() if framework.runs_on(plan.type))


def _gpu_problems(plan: Plan) -> list[JobProblem]:
    if not plan.type.is_gpu:
        return []
    allowed = f"a type with Neuron devices: {facts()['precompile']['not_ahead']['cuda']}"
    return [JobProblem(key="trn:instance_type", got=plan.instance_type, allowed=allowed, fix="run the job: trn run")]


def _script_problems(request: JobRequest, stack: str) -> list[JobProblem]:
    if request.command is not None:
        return []
    reason = facts()["precompile"]["not_ahead"][stack]
    fix = "use `trn run`, which stores what it compiles, or a job file whose `command` compiles"
    allowed = f"a command that compiles without a device: {reason}"
    return [JobProblem(key="script", got=str(request.script), allowed=allowed, fix=fix)]


def _host_problems(plan: Plan) -> list[JobProblem]:
    if plan.cache.precompile_instance_type is not None:
        return []
    hosts = ", ".join(facts()["precompile"]["hosts"])
    fix = "set it, and deploy: the host is billed only while it runs"
    return [JobProblem(key="trn:precompile_instance_type", got=None, allowed=hosts, fix=fix)]


def _command(job: Job) -> str:
    """The command of the host. For several nodes, the parts of all nodes run in parallel."""
    text = job.command
    if job.nodes > 1:
        ranks = " ".join(map(str, range(job.nodes)))
        text = (
            f"export TRN_NODES={job.nodes} HEAD_NODE={_LOOPBACK}; parts=(); "
            # The line break ends a comment or here-document at the end of the job's command.
            f"for TRN_NODE_RANK in {ranks}; do export TRN_NODE_RANK; ( {text}\n) & parts+=($!); done; "
            'code=0; for part in "${parts[@]}"; do wait "$part" || code=$?; done; exit $code'
        )
    return text
