"""All checks of a training job at once, as those of a plan."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from trainium_core.engines.sagemaker.job_checks.account import SageMakerAccount
from trainium_core.engines.sagemaker.job_checks.bucket_check import check_job_buckets
from trainium_core.engines.sagemaker.job_checks.image_check import check_job_image
from trainium_core.engines.sagemaker.job_checks.quota_check import check_job_quota
from trainium_core.engines.sagemaker.job_checks.role_check import check_job_role
from trainium_core.engines.sagemaker.jobs.cost import cost_words, job_estimate
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Finding
from trainium_core.preflight.identity_check import check_identity
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError

JobCheck = Callable[[Plan, TrainingJob, SageMakerAccount], CheckResult]


def _check_identity(plan: Plan, _: TrainingJob, account: SageMakerAccount) -> CheckResult:
    return check_identity(plan, account)


def _check_cost(plan: Plan, job: TrainingJob, account: SageMakerAccount) -> CheckResult:
    estimated = job_estimate(plan, job, aws=account)
    found = cost_words(job, estimated)
    if estimated.running_hour.unknown:
        fix = "give your own price in a file: trn:prices"
        return CheckResult(outcome="warn", found=found, fix=fix)
    days = sorted(line.price.date for line in estimated.lines if line.price and line.price.origin == "snapshot")
    return CheckResult(outcome="pass", found=found + (f"; by a snapshot of {days[0]}" if days else ""))


JOB_CHECKS: Mapping[str, JobCheck] = {
    "identity": _check_identity,
    "quota": check_job_quota,
    "image": check_job_image,
    "role": check_job_role,
    "buckets": check_job_buckets,
    "cost": _check_cost,
}
"""Every check by its name, in the order its finding is shown."""


def job_preflight(
    plan: Plan, job: TrainingJob, account: SageMakerAccount, *, suppressed: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Ask the account everything about a job that the rules let pass. A suppressed check is not asked, and says so."""
    with ThreadPoolExecutor(len(JOB_CHECKS)) as threads:
        running = {
            name: threads.submit(_run_check, check, plan, job, account)
            for name, check in JOB_CHECKS.items()
            if name not in suppressed
        }
    skipped = CheckResult(outcome="unknown", found="not asked: suppressed")
    return tuple(
        Finding(
            check=name, suppressed=name in suppressed, **asdict(running[name].result() if name in running else skipped)
        )
        for name in JOB_CHECKS
    )


def _run_check(check: JobCheck, plan: Plan, job: TrainingJob, account: SageMakerAccount) -> CheckResult:
    try:
        return check(plan, job, account)
    except UnavailableError as error:
        return CheckResult(outcome="unknown", found=error.reason, fix=error.remedy)
