"""Warnings for the author of a plan for Slurm on AWS PCS, and the settings that it does not use."""

from collections.abc import Mapping
from datetime import timedelta

from trainium_core.plan import Plan
from trainium_core.plan.warnings import Warnings, merged, node_warnings, route_warnings
from trainium_runtime.pilot_clock import notice_before_block_end, termination_minutes


def unused_settings(plan: Plan) -> Mapping[str, str]:
    """The settings that the stack does not use, each with the fix."""
    unused = {
        "node_timeout_minutes": "remove it: deployments do not wait for the nodes of Slurm",
        **dict.fromkeys(
            ("cloudwatch_metrics", "metrics_port", "metrics_security_group"),
            "remove it: nodes of Slurm take no samples of their devices",
        ),
    }
    if not plan.pcs.login:
        unused["pcs_login_instance_type"] = "set trn:pcs_login, or remove it"
    if plan.pcs.image is not None:
        unused |= dict.fromkeys(("ami", "ami_parameter"), "remove it: trn:pcs_ami is the image of all nodes")
    return unused


def pcs_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    return merged([*_warnings(plan), *route_warnings(plan)])


def _warnings(plan: Plan) -> Warnings:
    for key, text in node_warnings(plan):
        if key != "ami" or plan.pcs.image is None:
            yield key, text
    if plan.pilot.ends is None:
        billed = ["controller"]
        if plan.pcs.login:
            billed.append("login node")
        if plan.pcs.min_nodes:
            billed.append(f"static nodes ({plan.pcs.min_nodes})")
        yield (
            "ends",
            "nothing ends the AWS PCS cluster. Billed until the stack is destroyed, even without jobs, among others: "
            f"{', '.join(billed)}; set trn:ends, such as 5d",
        )
    elif plan.pilot.ends_action is None:
        yield (
            "ends_action",
            "PcsStack is destroyed at the end of the pilot, with its queued jobs; set trn:ends_action=destroy to "
            "confirm that",
        )
    if plan.capacity == "capacity-block":
        minutes = termination_minutes(plan.instance_type)
        early = notice_before_block_end(plan.instance_type) // timedelta(minutes=1)
        yield (
            "reservation_id",
            f"EC2 terminates the nodes {minutes} minutes before the Capacity Block ends. Jobs get a notice (SIGUSR1) "
            f"{early} minutes before the end: they should save a checkpoint then",
        )
    if plan.capacity == "reservation" and plan.pcs.interruptible:
        yield (
            "pcs_interruptible",
            "EC2 can reclaim the instances of an interruptible reservation: jobs need checkpoints to resume from",
        )
