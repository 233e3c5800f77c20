"""Warnings for the author of a plan for a HyperPod cluster."""

from collections.abc import Mapping

from trainium_core.plan import Plan
from trainium_core.plan.warnings import pilot_warnings


def hyperpod_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting."""
    warnings = dict(pilot_warnings(plan))
    if plan.pilot.ends is None:
        stay = "are billed" if plan.hyperpod.training_plan is None else "run"
        warnings["ends"] = (
            f"nothing ends the HyperPod cluster: {plan.nodes} x {plan.instance_type} {stay} until the stack is "
            "destroyed; set trn:ends, such as 5d"
        )
    elif plan.pilot.ends_action is None:
        warnings["ends_action"] = (
            "HyperPodStack is destroyed at the end of the pilot, with the data on its nodes' disks: a HyperPod cluster "
            "cannot sleep; set trn:ends_action=destroy to confirm that"
        )
    hyperpod = plan.hyperpod
    if hyperpod.orchestrator == "eks" and hyperpod.eks_security_group is None:
        warnings["hyperpod_eks_security_group"] = (
            "the nodes are in no security group of the EKS cluster: its control plane cannot reach them, and they "
            "cannot reach CoreDNS on other nodes; set trn:hyperpod_eks_security_group"
        )
    return warnings
