"""The instances of a compute node group. Without Slurm, the group holds its minimum. Instances run no programs."""

from collections.abc import Mapping
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2 import ec2_backends

from trainium_core.facts import facts
from trainium_local.services import auto_scaling

GROUP_TAG = "aws:pcs:compute-node-group-id"


def hold_minimum(account_id: str, region: str, group: Mapping[str, Any]) -> None:
    """Launch instances up to the minimum of the group. As on AWS, a refused launch does not fail the request."""
    template = group.get("customLaunchTemplate")
    if not template:
        return
    ec2: Any = ec2_backends[account_id][region]
    kind = group["instanceConfigs"][0]["instanceType"]
    for _ in range(group["scalingConfiguration"]["minInstanceCount"] - len(_instances(ec2, group))):
        try:
            reservation = ec2.run_instances(
                None,
                1,
                None,
                [],
                instance_type=kind,
                is_instance_type_default=False,
                launch_template={"LaunchTemplateId": template["id"], "Version": template["version"]},
                subnet_id=group["subnetIds"][0],
                tags={"instance": {GROUP_TAG: group["id"]}},
            )
        except ServiceException as error:
            print(f"compute node group {group['name']}: {error.message}", flush=True)
            return
        if kind not in facts()["pcs"]["login_types"]:
            auto_scaling.report_launch(reservation.instances[0])


def end_all(account_id: str, region: str, group: Mapping[str, Any]) -> None:
    """Terminate the instances of the group, including those that a test launched in place of a job."""
    ec2: Any = ec2_backends[account_id][region]
    if ids := _instances(ec2, group):
        ec2.terminate_instances(ids)


def _instances(ec2: Any, group: Mapping[str, Any]) -> list[str]:
    filters = {f"tag:{GROUP_TAG}": [group["id"]], "instance-state-name": ["pending", "running"]}
    return [instance.id for reservation in ec2.all_reservations(filters=filters) for instance in reservation.instances]
