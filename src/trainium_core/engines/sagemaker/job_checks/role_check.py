"""Whether the role of a training job is there, lets SageMaker take it, and reaches its image and its places in S3."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from trainium_core.engines.sagemaker.job_checks.account import Roles
from trainium_core.engines.sagemaker.jobs.images import parsed_image
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.facts import training_facts
from trainium_core.permissions.simulation import Calls
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError

_READ, _WRITE = "s3:GetObject", "s3:PutObject"
_PULL = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")


def check_job_role(_: Plan, job: TrainingJob, account: Roles) -> CheckResult:
    name = job.role_arn.rpartition("/")[2]
    service = training_facts()["container"]["service"]
    role = account.role(name)
    if role is None:
        return CheckResult(outcome="fail", found=f"there is no role {name}", fix="give --role of one that is there")
    if role.arn != job.role_arn:
        found = f"the role {name} of this account is {role.arn}, not {job.role_arn}"
        return CheckResult(outcome="fail", found=found, fix=f"give --role {role.arn}")
    if service not in role.trusted_services:
        found = f"{name} does not trust {service}"
        return CheckResult(outcome="fail", found=found, fix=f"let {service} assume it, or give another --role")
    return worst_of([CheckResult(outcome="pass", found=f"{service} may assume {name}"), *_access(job, account)])


def _access(job: TrainingJob, account: Roles) -> Iterator[CheckResult]:
    """Policies of the role alone: what those of a bucket or a repository add or refuse is not simulated."""
    for what, url, actions in _uses(job):
        resource = _resource(url)
        try:
            denials = account.denials(job.role_arn, Calls(actions=actions, resources=[resource]))
        except UnavailableError as error:
            yield CheckResult(outcome="unknown", found=f"whether the role reaches what the job uses: {error}")
            return
        if denials:
            fix = f"allow {', '.join(denial.action for denial in denials)} on {resource}"
            yield CheckResult(outcome="fail", found=f"the role may not use {what}, {url}", fix=fix)


def _resource(url: str) -> str:
    image = parsed_image(url)
    if image is not None:
        return f"arn:aws:ecr:{image.region}:{image.account}:repository/{image.repository}"
    url_parts = urlsplit(url)
    return f"arn:aws:s3:::{url_parts.netloc}/{url_parts.path.strip('/')}/*".replace("//", "/")


def _uses(job: TrainingJob) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    if parsed_image(job.image) is not None:
        yield "the image", job.image, _PULL
    yield "the source", job.source_url, (_READ,)
    yield "the output", job.output_url, (_WRITE,)
    for what, url in (("the checkpoints", job.checkpoint_url), ("the compile cache", job.cache_url)):
        if url is not None:
            yield what, url, (_READ, _WRITE)
    for name, url in job.inputs.items():
        yield f"the input {name}", url, (_READ,)
