"""Plans whose nodes this machine can prove."""

from typing import Any

from lab.machine import may_raise_limits
from trainium_core.facts import facts
from trainium_core.plan import Plan

BARE = {
    "neuron_software": "install",
    "ami": facts()["bare_images"]["parameters"]["Ubuntu 24.04"],
    "egress": "nat-gateway",
}
"""Settings of nodes that install their Neuron software themselves."""

LIMITS = ("memlock", "nofile")
"""Checks that need hard limits as high as EC2's. Where root may not raise them they are shown, but do not count."""


def lab_plan(*, instance_type: str = "trn1.32xlarge", **settings: Any) -> Plan:
    """A plan of one node."""
    suppressed = () if may_raise_limits() else LIMITS
    return Plan.of(instance_type=instance_type, region="us-west-2", suppress_checks=suppressed, **settings)
