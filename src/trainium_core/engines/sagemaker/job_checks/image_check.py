"""Whether the container image of a training job is there, where SageMaker pulls it from."""

from trainium_core.engines.sagemaker.job_checks.account import ContainerImages
from trainium_core.engines.sagemaker.jobs.images import parsed_image
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult


def check_job_image(_: Plan, job: TrainingJob, account: ContainerImages) -> CheckResult:
    image = parsed_image(job.image)
    assert image is not None, "the rules let no other pass"
    reference = {"imageTag": image.tag} if image.tag else {"imageDigest": image.digest or ""}
    if account.has_image(account=image.account, region=image.region, repository=image.repository, reference=reference):
        return CheckResult(outcome="pass", found=f"{image.repository}:{image.tag or image.digest} is there")
    found = f"ECR of account {image.account} has no {image.repository}:{image.tag or image.digest} in {image.region}"
    return CheckResult(outcome="fail", found=found, fix="give --image of one that is there")
