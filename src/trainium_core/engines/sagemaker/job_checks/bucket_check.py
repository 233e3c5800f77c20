"""Whether the buckets of a training job are there, in its region."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_core.storage.storage import Buckets
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError


def check_job_buckets(plan: Plan, job: TrainingJob, account: Buckets) -> CheckResult:
    return worst_of(_of_bucket(name, plan, account) for name in _buckets(job))


def _buckets(job: TrainingJob) -> Iterator[str]:
    urls = [job.source_url, job.output_url, job.checkpoint_url, job.cache_url, *job.inputs.values()]
    yield from dict.fromkeys(urlsplit(url).netloc for url in urls if url is not None)


def _of_bucket(name: str, plan: Plan, account: Buckets) -> CheckResult:
    try:
        region = account.bucket_region(name)
    except UnavailableError as error:
        return CheckResult(outcome="unknown", found=f"{name}: {error}")
    if region is None:
        return CheckResult(outcome="fail", found=f"there is no bucket {name}", fix="give one that is there")
    if region not in (plan.region, ""):
        found = f"{name} is in {region}, and the job in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix=f"give a bucket in {plan.region}")
    return CheckResult(outcome="pass", found=f"{name} is there")
