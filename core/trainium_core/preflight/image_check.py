"""Whether the image of the nodes is there, boots on them, and holds the framework."""

from collections.abc import Iterator
from datetime import UTC, datetime

from trainium_core.account import Account, Image
from trainium_core.facts import facts
from trainium_core.image_content import is_for_torch_neuronx, neuron_release, other_content
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_runtime.answer import Answer


def check_image(plan: Plan, account: Account) -> Answer:
    current = account.parameter(plan.image_parameter) if plan.image_parameter else None
    if plan.ami_is_parameter and current is None:
        found = f"no SSM parameter {plan.ami} in {plan.region}"
        return Answer(outcome="fail", found=found, fix="set trn:ami to another one, or to an AMI id")
    image_id = current if plan.ami_is_parameter and current else plan.ami
    image = account.image(image_id)
    if image is None:
        found = f"no image {image_id} in {plan.region} that this account may see"
        return Answer(outcome="fail", found=found, fix="set trn:ami to another one")
    answers = [*_what_keeps_it_from_booting(plan, image), _framework(plan, image), *_doubts(image)]
    if plan.ami_parameter is not None and current != image_id:
        answers.append(_pin_is_behind(plan.ami_parameter, image, current, account))
    return worst_of(answers)


def described(image: Image) -> str:
    """The image in a few words: its id and the release it says it has."""
    release = neuron_release(image)
    return f"{image.image_id} ({f'Neuron SDK {release}' if release else 'no Neuron SDK release named'})"


def _what_keeps_it_from_booting(plan: Plan, image: Image) -> Iterator[Answer]:
    architecture = facts()["neuron_images"]["architecture"]
    if image.state != "available":
        found = f"{image.image_id} is {image.state}"
        yield Answer(outcome="fail", found=found, fix="wait, or set trn:ami to another image")
    if image.architecture != architecture:
        found, needed = f"{image.image_id} is for {image.architecture}", architecture
        yield Answer(outcome="fail", found=found, needed=needed, fix=f"set trn:ami to an image for {architecture}")
    if image.root_device_name != plan.root_device_name:
        found = f"the root device of {image.image_id} is {image.root_device_name}, not {plan.root_device_name}"
        yield Answer(outcome="fail", found=found, fix=f"set trn:root_device_name to {image.root_device_name}")
    if image.root_volume_gib > plan.root_volume_gib:
        found = f"{image.image_id} takes {image.root_volume_gib} GiB, more than {plan.root_volume_gib}"
        fix = f"set trn:root_volume_gib to {image.root_volume_gib} or more"
        yield Answer(outcome="fail", found=found, needed=f"{image.root_volume_gib} GiB", fix=fix)


def _framework(plan: Plan, image: Image) -> Answer:
    """A plan that names a PyTorch parameter needs PyTorch; of any other, what the image holds is told."""
    release, last = neuron_release(image), facts()["neuron_images"]["last_release_with_torch_neuronx"]
    wanted = is_for_torch_neuronx(plan.image_parameter)
    needed = f"Neuron SDK {last}.x or older, for PyTorch" if wanted else ""
    if release is None:
        found = f"the description of {image.image_id} names no Neuron SDK release"
        fix = "make sure that the image holds what training needs"
        return Answer(outcome="unknown" if wanted else "warn", found=found, needed=needed, fix=fix)
    if not release.holds_torch_neuronx:
        found = f"{image.image_id} has Neuron SDK {release}, which holds no PyTorch for Trainium (torch-neuronx)"
        fix = f"set trn:ami to an image of release {last}" + ("" if wanted else ", if training needs PyTorch")
        return Answer(outcome="fail" if wanted else "warn", found=found, needed=needed, fix=fix)
    content = other_content(plan.image_parameter)
    if content is not None:
        return Answer(outcome="warn", found=f"images of {plan.image_parameter} hold {content}")
    return Answer(outcome="pass", found=f"{described(image)} is available", needed=needed)


def _doubts(image: Image) -> Iterator[Answer]:
    neuron = facts()["neuron_images"]
    if image.owner != neuron["owner"]:
        found = f"{image.image_id} belongs to account {image.owner}, not to Amazon"
        yield Answer(outcome="warn", found=found, fix="make sure that you trust it")
    if not image.name.startswith(neuron["name_prefix"]):
        found = f"{image.image_id} is called {image.name or 'nothing'}, not {neuron['name_prefix']}..."
        fix = "make sure that it brings the Neuron driver, EFA and the framework"
        yield Answer(outcome="warn", found=found, fix=fix)
    if image.deprecated is not None and image.deprecated <= datetime.now(UTC):
        found = f"{image.image_id} is deprecated since {image.deprecated:%Y-%m-%d}, and may be withdrawn"
        yield Answer(outcome="warn", found=found, fix="move to a newer image when you can")


def _pin_is_behind(parameter: str, pinned: Image, current: str | None, account: Account) -> Answer:
    if current is None:
        found = f"{parameter}, which {pinned.image_id} was taken from, is gone"
        return Answer(outcome="warn", found=found, fix="set trn:ami_parameter to another, or remove it")
    newer = account.image(current)
    found = f"pinned is {described(pinned)}; {parameter} is now {described(newer) if newer else current}"
    return Answer(outcome="warn", found=found, fix="run: trn image pin, if you want what it names now")
