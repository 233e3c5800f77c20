"""Whether AWS PCS has room for the cluster, and whether its nodes can boot the image."""

from collections.abc import Iterator

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.images import Image
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult


def check_pcs(plan: Plan, account: AwsAccount) -> CheckResult:
    """Whether the quota allows another AWS PCS cluster, and whether the nodes can boot the plan's image.

    Raises:
        UnavailableError: A request failed or was denied. This includes regions without AWS PCS, where clusters
            cannot be listed.
    """
    return worst_result([_clusters(plan, account), *_image(plan, account)])


def _clusters(plan: Plan, account: AwsAccount) -> CheckResult:
    names, most = account.resource_use.pcs_clusters(), facts()["pcs"]["quotas"]["clusters"]
    found = f"{len(names)} AWS PCS clusters in {plan.region}"
    if plan.cluster_name in names or len(names) < most:
        return CheckResult(outcome="pass", found=found)
    fix = (
        "request an increase of the quota for AWS PCS clusters; if it has been raised already, pass --suppress pcs, "
        "which also skips the check of the image"
    )
    return CheckResult(outcome="unknown", found=found, needed=f"fewer than {most}, the default quota", fix=fix)


def _image(plan: Plan, account: AwsAccount) -> Iterator[CheckResult]:
    own, key = plan.pcs.image, "trn:pcs_ami" if plan.pcs.image else "trn:ami"
    image_id = own or (account.parameter(plan.image) if plan.ami_is_parameter else plan.image)
    image = account.images.image(image_id) if image_id else None
    if image is None:
        what = f"image {image_id}" if image_id else f"SSM parameter {plan.image}"
        found = f"no {what} in {plan.region} that this account can access"
        yield CheckResult(outcome="fail", found=found, fix=f"set {key} to another image")
        return
    problems = [*_problems(plan, image, key)]
    dlami = facts()["neuron_images"]
    if own and image.owner == dlami["owner"] and image.name.startswith(dlami["name_prefix"]):
        found = f"{own} is {image.name}, which has neither the AWS PCS agent nor Slurm"
        fix = f"set trn:ami to {own} and remove trn:pcs_ami: the deployment then adds both to this image"
        problems.append(CheckResult(outcome="fail", found=found, fix=fix))
    yield from problems
    if own and not problems:
        oldest = facts()["pcs"]["oldest_agent"]
        found = f"unknown whether {own} includes the AWS PCS agent and Slurm {plan.pcs.slurm_version}"
        fix = f"make sure that it includes both (agent {oldest} or newer), and the Neuron software"
        yield CheckResult(outcome="warn", found=found, fix=fix)


def _problems(plan: Plan, image: Image, key: str) -> Iterator[CheckResult]:
    architecture = facts()["neuron_images"]["architecture"]
    if image.state != "available":
        fix = f"wait, or set {key} to another image"
        yield CheckResult(outcome="fail", found=f"{image.image_id} is {image.state}", fix=fix)
    if image.architecture != architecture:
        found = f"{image.image_id} is for {image.architecture}"
        yield CheckResult(outcome="fail", found=found, needed=architecture, fix=f"set {key} to another image")
    if image.root_device_name != plan.root_device_name:
        found = f"the root device of {image.image_id} is {image.root_device_name}, not {plan.root_device_name}"
        yield CheckResult(outcome="fail", found=found, fix=f"set trn:root_device_name to {image.root_device_name}")
    if image.root_volume_gib > plan.root_volume_gib:
        found, needed = f"trn:root_volume_gib is {plan.root_volume_gib}", f"{image.root_volume_gib} GiB"
        fix = f"set trn:root_volume_gib to {image.root_volume_gib} or more"
        yield CheckResult(outcome="fail", found=found, needed=needed, fix=fix)
