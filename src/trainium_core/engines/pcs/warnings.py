"""Warnings for the author of a plan for Slurm on AWS PCS."""

from collections.abc import Iterator, Mapping

from trainium_core.plan import Plan
from trainium_core.plan.warnings import LUSTRE_CLIENT, capacity_warnings, merged, pilot_warnings, root_volume_warnings


def pcs_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    return merged([*pilot_warnings(plan), *_warnings(plan)])


def _warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    for warning in capacity_warnings(plan.capacity):
        yield "capacity", warning
    for warning in root_volume_warnings(plan.root_volume_gib):
        yield "root_volume_gib", warning
    if plan.file_systems.fsx_lustre is not None:
        yield "fsx_lustre", LUSTRE_CLIENT
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
    if plan.capacity == "reservation" and plan.pcs.interruptible:
        yield (
            "pcs_interruptible",
            "EC2 can reclaim the instances of an interruptible reservation: jobs need checkpoints to resume from",
        )
