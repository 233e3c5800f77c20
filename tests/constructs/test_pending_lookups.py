"""Placeholders of lookups that the CDK CLI has yet to make are accepted: it synthesises again afterwards."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm

from tests.constructs.synth import REGION, new_app
from trainium_cdk import (
    Budget,
    Capacity,
    ClusterNetwork,
    CompileCache,
    ElasticFileSystem,
    LustreFileSystem,
    NeuronFleet,
    NodeImage,
    PropsError,
    QuotaCheck,
    SageMakerTraining,
)

TYPE = ec2.InstanceType("trn1.32xlarge")


def a_stack() -> Stack:
    return Stack(new_app(), "Web", env=Environment(account="111122223333", region=REGION))


def pending(stack: Stack) -> str:
    """The placeholder that an app gets for an SSM parameter at its first synthesis."""
    return ssm.StringParameter.value_from_lookup(stack, "/company/value")


def fleet(stack: Stack, **props: Any) -> NeuronFleet:
    settings: dict[str, Any] = {"instance_type": TYPE, "vpc": ec2.Vpc(stack, "Vpc", max_azs=2), **props}
    return NeuronFleet(stack, "Fleet", **settings)


PENDING: Mapping[str, Callable[[Stack], object]] = {
    "image": lambda stack: fleet(stack, image=NodeImage.custom(ec2.MachineImage.lookup(name="golden-*"))),
    "image id": lambda stack: fleet(
        stack, image=NodeImage.custom(ec2.MachineImage.generic_linux({REGION: pending(stack)}))
    ),
    "zone": lambda stack: fleet(stack, vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2b"])),
    "zone of a lookup": lambda stack: fleet(
        stack, vpc_subnets=ec2.SubnetSelection(availability_zones=[pending(stack)])
    ),
    "zone of a lookup in an imported VPC": lambda stack: fleet(
        stack,
        vpc=ec2.Vpc.from_vpc_attributes(
            stack, "Imported", vpc_id="vpc-1", availability_zones=["us-west-2b"], private_subnet_ids=["subnet-1"]
        ),
        vpc_subnets=ec2.SubnetSelection(availability_zones=[pending(stack)]),
    ),
    "subnet group": lambda stack: fleet(stack, vpc_subnets=ec2.SubnetSelection(subnet_group_name=pending(stack))),
    "cluster_name": lambda stack: fleet(stack, cluster_name=pending(stack)),
    "instance_type": lambda stack: fleet(stack, instance_type=ec2.InstanceType(pending(stack))),
    "capacity block": lambda stack: fleet(stack, capacity=Capacity.capacity_block(pending(stack))),
    "reservation": lambda stack: fleet(stack, capacity=Capacity.reservation(pending(stack))),
    "notify_email": lambda stack: fleet(stack, notify_email=pending(stack), budget=Budget.usd(100)),
    "dns_servers": lambda stack: fleet(stack, dns_servers=[pending(stack)]),
    "bucket_name": lambda stack: CompileCache(stack, "Cache", bucket_name=pending(stack)),
    "training image": lambda stack: SageMakerTraining(stack, "Training", cluster_name="one", image=pending(stack)),
    "zone_id": lambda stack: ClusterNetwork(stack, "Network", zone_id=pending(stack)),
    "network": lambda stack: ClusterNetwork.from_cluster_network_attributes(
        stack, "Network", vpc_id=pending(stack), subnet_id=pending(stack), route_table_id=pending(stack)
    ),
    "efs": lambda stack: ElasticFileSystem.from_elastic_file_system_attributes(
        stack, "Efs", file_system_id=pending(stack), security_group_id=pending(stack)
    ),
    "lustre": lambda stack: LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Lustre", file_system_id=pending(stack), mount_name=pending(stack), security_group_id=pending(stack)
    ),
    "quota": lambda stack: QuotaCheck(stack, "Quota", instance_type=ec2.InstanceType(pending(stack)), nodes=4),
}


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING.keys())
def test_placeholder_of_pending_lookup_is_accepted(make: Callable[[Stack], object]) -> None:
    make(a_stack())


def test_zone_missing_in_a_looked_up_vpc_is_refused() -> None:
    """The case `zone` after the lookup, in an account with other zones."""
    stack = a_stack()
    stack.node.set_context(f"availability-zones:account=111122223333:region={REGION}", ["us-west-2a", "us-west-2c"])
    with pytest.raises(PropsError, match="us-west-2a, us-west-2c"):
        PENDING["zone"](stack)


def test_zone_in_stack_without_account_explains_missing_subnet() -> None:
    stack = Stack(new_app(), "Web", env=Environment(region=REGION))
    with pytest.raises(PropsError) as error:
        fleet(stack, vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2b"]))
    assert "Token" not in str(error.value)
    assert "env=Environment(account=..., region='us-west-2')" in str(error.value)
