"""What a job names outside the cluster's bucket, against what the plan lets its nodes reach."""

from collections.abc import Iterator, Sequence

from trainium_core.jobs.problems import JobProblem
from trainium_core.jobs.request import JobRequest
from trainium_core.plan.settings.jobs import JobAccess

_DEPLOY = "and deploy, which lets the nodes' role read it"


def not_allowed(access: JobAccess, request: JobRequest) -> Iterator[JobProblem]:
    """What the nodes would be refused, minutes later."""
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
                allowed=f"what trn:job_secrets names: {', '.join(access.secrets) or 'nothing'}",
                fix=f"add it to trn:job_secrets {_DEPLOY}",
            )
    kept = [access.checkpoints] if access.checkpoints else []
    if request.checkpoints is not None and not _is_below(request.checkpoints, kept):
        yield JobProblem(
            key="checkpoints",
            got=request.checkpoints,
            allowed=_folders("trn:job_checkpoints", kept),
            fix="set trn:job_checkpoints to it, and deploy, which lets the nodes' role write there",
        )


def _is_below(url: str, folders: Sequence[str]) -> bool:
    return any(f"{url.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _folders(key: str, folders: Sequence[str]) -> str:
    return f"what is in {key}: {', '.join(folders) or 'nothing'}"
