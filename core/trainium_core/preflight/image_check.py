"""Whether the image of the nodes is there, and fits the plan."""

from trainium_core.account import Account
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Answer


def check_image(plan: Plan, account: Account) -> Answer:
    image_id = account.parameter(plan.ami) if plan.ami_is_parameter else plan.ami
    if image_id is None:
        found = f"no SSM parameter {plan.ami} in {plan.region}"
        return Answer(outcome="fail", found=found, fix="set trn:ami to another one, or to an AMI id")
    image = account.image(image_id)
    if image is None:
        found = f"no image {image_id} in {plan.region} that this account may see"
        return Answer(outcome="fail", found=found, fix="set trn:ami to another one")
    if image.state != "available":
        found = f"{image_id} is {image.state}"
        return Answer(outcome="fail", found=found, fix="wait, or set trn:ami to another image")
    if image.root_device_name != plan.root_device_name:
        found = f"the root device of {image_id} is {image.root_device_name}, not {plan.root_device_name}"
        return Answer(outcome="fail", found=found, fix=f"set trn:root_device_name to {image.root_device_name}")
    if image.root_volume_gib > plan.root_volume_gib:
        found = f"{image_id} takes {image.root_volume_gib} GiB, more than {plan.root_volume_gib}"
        return Answer(outcome="fail", found=found, fix=f"set trn:root_volume_gib to {image.root_volume_gib} or more")
    return Answer(outcome="pass", found=f"{image_id} is available")
