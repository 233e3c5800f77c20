"""The network needs of AWS PCS nodes: the API of AWS PCS, and the internet while their image is built."""

from typing import Literal

from trainium_core.plan import Plan
from trainium_core.plan.settings.network import DEFAULT_EGRESS, Egress

ENDPOINT_SERVICES = ("pcs",)
"""Services that nodes call, besides S3 and the services of Session Manager."""


def new_egress(plan: Plan) -> Egress:
    """The egress of a new VPC. The image recipe compiles Slurm in the nodes' subnet and downloads packages there."""
    return plan.network.egress or (DEFAULT_EGRESS if plan.pcs.image else "nat-gateway")


def effective_egress(plan: Plan) -> Egress | Literal["existing"]:
    """The egress of the plan's VPC; `existing` in an existing VPC."""
    return "existing" if plan.network.vpc_id else new_egress(plan)
