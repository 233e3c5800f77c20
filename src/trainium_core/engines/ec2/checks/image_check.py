"""Whether the machine image of the nodes exists, boots on their type, and contains the framework."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.images import Image
from trainium_core.catalog.neuron_release import NeuronRelease, neuron_release, other_content
from trainium_core.catalog.neuron_software import (
    Framework,
    frameworks,
    image_facts,
    image_name_framework,
    image_system,
    parameter_framework,
    pytorch_for,
)
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult


def check_image(plan: Plan, account: AwsAccount) -> CheckResult:
    """Check the image that the plan names, by its ID or by an SSM parameter, or the default image."""
    current = account.parameter(plan.image_parameter) if plan.image_parameter else None
    if plan.ami_is_parameter and current is None:
        found = f"no SSM parameter {plan.image} in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix="set trn:ami to another one, or to an AMI ID")
    image_id = current if plan.ami_is_parameter and current else plan.image
    image = account.images.image(image_id)
    if image is None:
        found = f"no image {image_id} in {plan.region} that this account can access"
        return CheckResult(outcome="fail", found=found, fix="set trn:ami to another one")
    framework = _framework_for_gpus(plan, image) if plan.type.is_gpu else _framework(plan, image)
    results = [*_boot_problems(plan, image), framework, *_doubts(plan, image)]
    if plan.ami_parameter is not None and current != image_id:
        results.append(_pin_is_behind(plan.ami_parameter, image, current, account))
    result = worst_result(results)
    if result.outcome == "fail" or plan.node.verification == "observe" or _is_known(plan, image):
        return result
    suggestion = "for the first deployment of an image, set trn:verification to observe: node checks that may not "
    suggestion += "fit the image then only warn"
    return replace(result, fix="; ".join(part for part in (result.fix, suggestion) if part))


def _is_known(plan: Plan, image: Image) -> bool:
    """Whether the facts list the type with this release as verified on an account."""
    return [plan.instance_type, str(neuron_release(image.description))] in facts()["verification"]["known"]


def described(image: Image) -> str:
    """The image's ID with the Neuron SDK release in its description, or, for a GPU image, with its name."""
    if image.name.startswith(image_facts(gpus=True)["name_prefix"]):
        return f"{image.image_id} ({image.name})"
    release = neuron_release(image.description)
    return f"{image.image_id} ({f'Neuron SDK {release}' if release else 'no Neuron SDK release named'})"


def _boot_problems(plan: Plan, image: Image) -> Iterator[CheckResult]:
    architecture = image_facts(gpus=plan.type.is_gpu)["architecture"]
    if image.state != "available":
        found = f"{image.image_id} is {image.state}"
        yield CheckResult(outcome="fail", found=found, fix="wait, or set trn:ami to another image")
    if image.architecture != architecture:
        found, needed = f"{image.image_id} is for {image.architecture}", architecture
        yield CheckResult(outcome="fail", found=found, needed=needed, fix=f"set trn:ami to an image for {architecture}")
    known = image_facts(gpus=False)["operating_systems"]
    system = image_system(image.name)
    if system is not None and system not in known:
        found = f"{image.image_id} is for {system}: nodes were tried on {' and '.join(known)}"
        yield CheckResult(outcome="fail", found=found, fix=f"set trn:ami to an image for {known[0]}")
    if image.root_device_name != plan.root_device_name:
        found = f"the root device of {image.image_id} is {image.root_device_name}, not {plan.root_device_name}"
        yield CheckResult(outcome="fail", found=found, fix=f"set trn:root_device_name to {image.root_device_name}")
    if image.root_volume_gib > plan.root_volume_gib:
        found = (
            f"{image.image_id} needs {image.root_volume_gib} GiB, more than trn:root_volume_gib {plan.root_volume_gib}"
        )
        fix = f"set trn:root_volume_gib to {image.root_volume_gib} or more"
        yield CheckResult(outcome="fail", found=found, needed=f"{image.root_volume_gib} GiB", fix=fix)


def _framework_for_gpus(plan: Plan, image: Image) -> CheckResult:
    """Fails for an image for Neuron devices. Warns if the driver, PyTorch or support for the type may be missing."""
    known, types = image_facts(gpus=True), supported_types(image)
    if image.name.startswith(image_facts(gpus=False)["name_prefix"]):
        fix = "remove trn:ami, or set it to an image for GPUs"
        return CheckResult(outcome="fail", found=f"{image.image_id} is an image for Neuron devices", fix=fix)
    if not (parameter_framework(plan.image_parameter) or image_name_framework(image.name)):
        found = f"unknown whether {image.image_id} includes the NVIDIA driver and PyTorch in /opt/pytorch"
        fix = f"make sure that the image does, or set trn:ami to {known['ssm_parameter']}"
        return CheckResult(outcome="warn", found=found, fix=fix)
    family = plan.instance_type.split(".")[0]
    if types and family not in types:
        found = f"the description of {image.image_id} lists {', '.join(types)}, but not {family}"
        return CheckResult(outcome="warn", found=found, fix="set trn:ami to an image with a newer PyTorch")
    return CheckResult(outcome="pass", found=f"{described(image)} is available")


def supported_types(image: Image) -> tuple[str, ...]:
    """The families of instance types in the description of a GPU image, such as p5; empty if it lists none."""
    listed = re.search(rf"{image_facts(gpus=True)['supported']}([^.]*)", image.description)
    return tuple(name.strip().lower() for name in listed[1].split(",")) if listed else ()


def _framework(plan: Plan, image: Image) -> CheckResult:
    """Fails if the image is too old, or PyTorch is missing or unusable on the type. Warns if PyTorch may be missing.

    If the image should include PyTorch and its description names no release, the result is `unknown`.
    """
    promised = parameter_framework(plan.image_parameter) or image_name_framework(image.name)
    wanted = promised if promised and promised.is_pytorch else None
    release, needed = neuron_release(image.description), _releases(wanted) if wanted else ""
    if wanted and not wanted.runs_on(plan.type):
        found = f"{image.image_id} contains {wanted.title}, which does not run on {plan.type.accelerator}"
        return CheckResult(
            outcome="fail", found=found, fix=f"set trn:ami to an image with {pytorch_for(plan.type).title}"
        )
    if release is None:
        found = f"the description of {image.image_id} names no Neuron SDK release"
        fix = "make sure that the image contains what training needs"
        return CheckResult(outcome="unknown" if wanted else "warn", found=found, needed=needed, fix=fix)
    oldest = image_facts(gpus=False)["oldest_release"]["value"]
    if release < NeuronRelease.from_text(oldest):
        found = f"{image.image_id} has Neuron SDK {release}, whose nccom-test cannot report results"
        fix = f"set trn:ami to an image with Neuron SDK {oldest} or newer"
        return CheckResult(outcome="fail", found=found, needed=f"Neuron SDK {oldest} or newer", fix=fix)
    if wanted and not release.may_contain(wanted):
        found = f"{image.image_id} has Neuron SDK {release}, which does not include {wanted.title}"
        return CheckResult(outcome="fail", found=found, needed=needed, fix=f"set trn:ami to an image with {needed}")
    if not wanted and not release.may_contain(frameworks()["xla"]):
        found = f"unknown whether {image.image_id}, with Neuron SDK {release}, includes PyTorch for Trainium"
        fix = f"if training needs PyTorch, set trn:ami to an image with {pytorch_for(plan.type).title}"
        return CheckResult(outcome="warn", found=found, fix=fix)
    content = other_content(plan.image_parameter)
    if content is not None:
        return CheckResult(outcome="warn", found=f"images of {plan.image_parameter} contain {content}")
    found = [f"{described(image)} is available"]
    if wanted and wanted.support:
        found.append(wanted.support)
    fault = image_facts(gpus=False)["runtime_fault"]
    if release < NeuronRelease.from_text(fault["fixed_in"]):
        found.append(f"its runtime {fault['what']}")
    return CheckResult(outcome="pass", found="; ".join(found), needed=needed)


def _releases(framework: Framework) -> str:
    bound = f"{framework.last_release}.x or older" if framework.last_release else f"{framework.first_release} or newer"
    return f"Neuron SDK {bound}, for {framework.title}"


def _doubts(plan: Plan, image: Image) -> Iterator[CheckResult]:
    known = image_facts(gpus=plan.type.is_gpu)
    if image.owner != known["owner"]:
        found = f"{image.image_id} belongs to account {image.owner}, not to Amazon"
        yield CheckResult(outcome="warn", found=found, fix="make sure that you trust the image")
    if not image.name.startswith(known["name_prefix"]):
        found = f"the name of {image.image_id} is {image.name!r}, and does not begin with {known['name_prefix']!r}"
        fix = "make sure that the image contains the driver, EFA and the framework"
        yield CheckResult(outcome="warn", found=found, fix=fix)
    if image.deprecated is not None and image.deprecated <= datetime.now(UTC):
        found = f"{image.image_id} has been deprecated since {image.deprecated:%Y-%m-%d}, and may be withdrawn"
        yield CheckResult(outcome="warn", found=found, fix="move to a newer image when you can")


def _pin_is_behind(parameter: str, pinned: Image, current: str | None, account: AwsAccount) -> CheckResult:
    if current is None:
        found = f"{parameter}, the source of {pinned.image_id}, does not exist"
        return CheckResult(outcome="warn", found=found, fix="set trn:ami_parameter to another, or remove it")
    newer = account.images.image(current)
    found = f"pinned is {described(pinned)}; {parameter} is now {described(newer) if newer else current}"
    return CheckResult(outcome="warn", found=found, fix="to use the newer image, run `trn image pin`")
