"""A network to launch into, and launch templates for the tests."""

from dataclasses import dataclass
from typing import Any

NEURON_IMAGE = "/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id"


@dataclass(frozen=True, kw_only=True)
class Network:
    """A VPC with one subnet and one security group, and clients for its region."""

    ec2: Any
    autoscaling: Any
    vpc: str
    subnet: str
    group: str
    image: str

    def cards(self, count: int, *, kind: str = "efa", **more: Any) -> list[dict[str, Any]]:
        """Network interfaces for the first `count` network cards, as in the EC2 documentation."""
        return [
            {
                "NetworkCardIndex": i,
                "DeviceIndex": min(i, 1),
                "InterfaceType": kind if i else "efa",
                "Groups": [self.group],
            }
            | more
            for i in range(count)
        ]

    def template(self, name: str, instance_type: str = "trn1.32xlarge", **data: Any) -> str:
        data = {"ImageId": self.image, "InstanceType": instance_type} | data
        created = self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        return created["LaunchTemplate"]["LaunchTemplateId"]

    def run(self, template: str, count: int = 1, **more: Any) -> list[dict[str, Any]]:
        """Launch from the template as Auto Scaling does, with the subnet as a separate argument."""
        parameters = {"LaunchTemplate": {"LaunchTemplateId": template}, "MinCount": count, "MaxCount": count}
        return self.ec2.run_instances(**parameters | {"SubnetId": self.subnet} | more)["Instances"]

    def create_group(self, name: str, template: str, nodes: int, version: str = "$Latest") -> dict[str, Any]:
        """Create an Auto Scaling group of `nodes` instances in the subnet, and return its description."""
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateId": template, "Version": version},
            MinSize=0,
            MaxSize=nodes,
            DesiredCapacity=nodes,
            VPCZoneIdentifier=self.subnet,
        )
        return self.group_named(name)

    def group_named(self, name: str) -> dict[str, Any]:
        return self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]

    def instance(self, instance_id: str) -> dict[str, Any]:
        return self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]


def make_network(aws: Any, *, zone_id: str, prefix: int = 24) -> Network:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.0.0/{prefix}", AvailabilityZoneId=zone_id)["Subnet"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    image = aws.client("ssm").get_parameter(Name=NEURON_IMAGE)["Parameter"]["Value"]
    return Network(
        ec2=ec2, autoscaling=aws.client("autoscaling"), vpc=vpc, subnet=subnet["SubnetId"], group=group, image=image
    )


def clear(network: Network) -> None:
    """Delete every Auto Scaling group and terminate every instance, so that the next test has the whole quota."""
    delete_groups_and_terminate_instances(network.ec2, network.autoscaling)


def delete_groups_and_terminate_instances(ec2: Any, autoscaling: Any) -> None:
    for group in autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]:
        autoscaling.delete_auto_scaling_group(AutoScalingGroupName=group["AutoScalingGroupName"], ForceDelete=True)
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=alive)
    ids = [i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"]]
    if ids:
        ec2.terminate_instances(InstanceIds=ids)
