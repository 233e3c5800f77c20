"""Plans whose nodes this machine can run."""

from typing import Any

from tools.lab.machine import may_raise_limits
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.quotas.ec2 import quota_need

BARE = {
    "neuron_software": "install",
    "ami": facts()["bare_images"]["parameters"]["Ubuntu 24.04"],
    "egress": "nat-gateway",
}
"""Settings of nodes that install their Neuron software themselves."""

MAX_NODES = 4
"""Nodes of the largest cluster that a test of the lab deploys."""

LIMITS = ("memlock", "nofile")
"""Checks that need hard limits as high as EC2's. Where root may not raise limits, they are suppressed."""


def lab_plan(*, instance_type: str = "trn1.32xlarge", **settings: Any) -> Plan:
    """A plan, of one node by default."""
    suppressed = () if may_raise_limits() else LIMITS
    return Plan.of(instance_type=instance_type, region="us-west-2", suppress_checks=suppressed, **settings)


def quotas() -> dict[str, float]:
    """The vCPU quota by its code: enough for the largest cluster of trn1.32xlarge and one more node."""
    need = quota_need(lab_plan(nodes=MAX_NODES + 1))
    assert need
    return {need.code: need.vcpus}
