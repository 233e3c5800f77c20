"""A job of `trn run` as a training job of SageMaker: what it is not taken with, each with what to do instead."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan

_RESUME = "leave it out: SageMaker does not start it again, and --resume JOB goes on from its checkpoints"
_NOT_ON_SAGEMAKER = {
    "command": "put it into a script, and give that",
    "setup": "leave it out, and list packages in the source's requirements.txt, which the container installs",
    "stack": "leave it out: it is that of the training image",
    "secrets": "leave it out, and let the script read the secret as the job's role",
    "retries": _RESUME,
    "retry_on_exit_codes": _RESUME,
    "retry_on_hang": _RESUME,
    "hang_minutes": "leave it out, and give a time limit",
    "checkpoint_seconds": "leave it out: SageMaker copies checkpoints when they change",
}
"""Keys that SageMaker has nothing for, with what to do instead."""


def check_for_sagemaker(plan: Plan, request: JobRequest, given: Mapping[str, Any], shown: Mapping[str, str]) -> None:
    """Raises JobError with everything in a request that a training job cannot have.

    given: the raw values by their keys: what was left out is no problem. shown: how a key is called where it was given.
    """
    problems = [*_not_on_sagemaker(given, shown), *_other_inputs(request, shown)]
    if request.nodes not in (None, plan.nodes):
        fix = f"leave it out, or set trn:nodes to {request.nodes}: a training job has all instances of the plan"
        key = shown.get("nodes", "nodes")
        problems.append(JobProblem(key=key, got=request.nodes, allowed=f"{plan.nodes}, those of the plan", fix=fix))
    if not request.compile_cache:
        fix = "leave it out: a training job has the compile cache of its plan"
        key = shown.get("compile_cache", "compile_cache")
        problems.append(JobProblem(key=key, got=False, allowed="true on SageMaker", fix=fix))
    if problems:
        raise JobError(problems)


def _not_on_sagemaker(given: Mapping[str, Any], shown: Mapping[str, str]) -> Iterator[JobProblem]:
    for key, fix in _NOT_ON_SAGEMAKER.items():
        # Nothing, no and none mean what SageMaker does.
        if given.get(key) and given[key] != "0":
            got = given[key] if key != "secrets" else ", ".join(given[key])
            yield JobProblem(key=shown.get(key, key), got=got, allowed="nothing on SageMaker", fix=fix)


def _other_inputs(request: JobRequest, shown: Mapping[str, str]) -> Iterator[JobProblem]:
    for name, place in request.inputs.items():
        if name in request.uploads or not place.endswith("/"):
            fix = "copy it to a folder in S3 that the job's role reads, and give that with a / at its end"
            yield JobProblem(
                key=shown.get("inputs", "inputs"),
                got=f"{name} = {place}",
                allowed="folders in S3 on SageMaker, such as s3://my-data/tokens/",
                fix=fix,
            )
