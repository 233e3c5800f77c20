"""Derives a job from a request and the plan of a cluster."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from trainium_core.catalog.neuron_software import frameworks
from trainium_core.facts import facts
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.request import LONGEST_NAME, JobRequest
from trainium_core.plan import Plan
from trainium_core.plan.settings.jobs import JobAccess
from trainium_core.problems import SETTING_PREFIX
from trainium_wire.formats import time_text
from trainium_wire.job import Job
from trainium_wire.job_folders import quoted
from trainium_wire.job_keys import INPUTS

_MINUTE = 60
_DEPLOY = "and deploy, which lets the nodes' role read it"


def new_job(
    plan: Plan, request: JobRequest, *, script: str | None, now: datetime, source_sha256: str | None = None
) -> Job:
    """The job of a request on the plan's cluster.

    Args:
        plan: The plan of the cluster.
        request: The request.
        script: Path of the script in the packed source; None for a command.
        now: The time of the submission.
        source_sha256: SHA-256 of the packed source.

    Raises:
        JobError: The cluster cannot run the job as requested.
    """
    nodes = plan.nodes if request.nodes is None else request.nodes
    problems = list(access_problems(plan.jobs, request))
    if nodes > plan.nodes:
        fix = f"request up to {plan.nodes}, or deploy with trn:nodes={nodes}"
        problems.append(JobProblem(key="nodes", got=nodes, allowed=f"1 to {plan.nodes}, the cluster's nodes", fix=fix))
    usable = [plan.framework] if plan.framework else frameworks().values()
    stacks = [framework.stack for framework in usable if framework.runs_on(plan.type)]
    if request.framework not in (None, *stacks):
        fix = f"remove it, or name another image in {SETTING_PREFIX}ami"
        allowed = f"{' or '.join(stacks)}, on {plan.instance_type} with the plan's image"
        problems.append(JobProblem(key="framework", got=request.framework, allowed=allowed, fix=fix))
    stack = request.framework or (plan.framework.stack if plan.framework else None)
    if stack == "jax" and request.script is not None:
        problems.append(
            JobProblem(
                key="script",
                got=str(request.script),
                allowed="a command: torchrun starts PyTorch's processes, and JAX needs one process for each node",
                fix='write command = "python ..." into a job file, and read TRN_NODES, TRN_NODE_RANK and HEAD_NODE',
            )
        )
    problems += _profile_problems(plan, request, nodes)
    if problems:
        raise JobError(problems)
    name = request.name or _job_name(script or "job")
    return Job(
        id=f"{name}-{now.astimezone(UTC):%Y%m%d-%H%M%S}",
        name=name,
        cluster=plan.cluster_name,
        submitted_at=time_text(now),
        source_sha256=source_sha256,
        nodes=nodes,
        processes_per_node=plan.processes_per_node,
        has_ranks=request.command is None,
        stack=stack,
        command=_node_command(plan, request, script),
        setup=request.setup,
        environment=dict(request.environment),
        secrets=dict(request.secrets),
        inputs={name: _input_url(name, place, request.uploads) for name, place in request.inputs.items()},
        checkpoints=_without_slash(request.checkpoints or plan.jobs.checkpoints),
        checkpoint_seconds=request.checkpoint_seconds,
        compile_cache=request.compile_cache,
        observe=request.observe,
        profile=request.profile,
        profile_device=request.profile_device,
        resume_from=request.resume,
        resume_files=request.resume_files,
        retries=request.retries,
        retry_on_exit_codes=request.retry_on_exit_codes,
        retry_on_hang=request.retry_on_hang,
        hang_seconds=_seconds(request.hang_minutes),
        time_limit_seconds=_seconds(request.time_limit_minutes),
    )


def _profile_problems(plan: Plan, request: JobRequest, nodes: int) -> Iterator[JobProblem]:
    if request.profile and plan.type.is_gpu:
        fix = "remove it, and start the script with NVIDIA Nsight Systems"
        allowed = "no value on GPUs: it is a profile of the Neuron runtime"
        yield JobProblem(key="profile", got=list(request.profile), allowed=allowed, fix=fix)
        return
    what, most = ("nodes", nodes) if request.command is not None else ("ranks", nodes * plan.processes_per_node)
    absent = [rank for rank in request.profile if rank >= most]
    if absent:
        allowed = f"0 to {most - 1}: the job has {most} {what}"
        yield JobProblem(key="profile", got=absent, allowed=allowed, fix="name ranks in this range, such as 0")


def access_problems(access: JobAccess, request: JobRequest) -> Iterator[JobProblem]:
    """Problems with S3 folders and secrets that the nodes' role cannot access."""
    for name, url in request.inputs.items():
        if name not in request.uploads and not _is_below(url, access.inputs):
            yield JobProblem(
                key="inputs",
                got=f"{name} = {url}",
                allowed=_folders("trn:job_inputs", access.inputs),
                fix=f"add its folder to trn:job_inputs {_DEPLOY}",
            )
    for name, arn in request.secrets.items():
        if arn not in access.secrets:
            yield JobProblem(
                key="secrets",
                got=f"{name} = {arn}",
                allowed=f"an ARN in trn:job_secrets: {', '.join(access.secrets) or 'the plan has none'}",
                fix=f"add it to trn:job_secrets {_DEPLOY}",
            )
    folders = [access.checkpoints] if access.checkpoints else []
    if request.checkpoints is not None and not _is_below(request.checkpoints, folders):
        yield JobProblem(
            key="checkpoints",
            got=request.checkpoints,
            allowed=_folders("trn:job_checkpoints", folders),
            fix="set trn:job_checkpoints to it, and deploy, which lets the nodes' role write there",
        )


def _is_below(url: str, folders: Sequence[str]) -> bool:
    return any(f"{url.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _folders(key: str, folders: Sequence[str]) -> str:
    return f"a folder of {key}, or a folder below one: {', '.join(folders) or 'the plan has none'}"


def _node_command(plan: Plan, request: JobRequest, script: str | None) -> str:
    """The command of each node: torchrun with one process per logical NeuronCore or GPU, or the user's command.

    The command is the same on every node. Each node sets TRN_NODES, TRN_NODE_RANK and HEAD_NODE first.

    Ranks are static and follow the membership (see trainium_core.nodes.next_steps). If a process dies, the attempt ends
    on all nodes, so torchrun must not restart processes. With `--tee`, torchrun prints the rank before each line.
    """
    if request.command is not None:
        return request.command
    assert script is not None
    options = {
        "nnodes": "$TRN_NODES",
        "nproc_per_node": str(plan.processes_per_node),
        "node_rank": "$TRN_NODE_RANK",
        "master_addr": "$HEAD_NODE",
        "master_port": str(facts()["rendezvous"]["port"]),
        "max_restarts": "0",
        "tee": "3",
    }
    written = " ".join(f"--{name}={value}" for name, value in options.items())
    return f"torchrun {written} {' '.join(map(quoted, [script, *request.arguments]))}"


def _job_name(script: str) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", PurePosixPath(script).stem.lower())[:LONGEST_NAME].strip("-")
    return stem or "job"


def _input_url(name: str, place: str, uploads: Mapping[str, Path]) -> str:
    if name not in uploads:
        return place
    return f"{INPUTS}/{name}/" if uploads[name].is_dir() else f"{INPUTS}/{name}"


def _without_slash(url: str | None) -> str | None:
    return None if url is None else url.rstrip("/")


def _seconds(minutes: int | None) -> int | None:
    return None if minutes is None else minutes * _MINUTE
