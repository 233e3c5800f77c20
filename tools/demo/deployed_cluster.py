"""The resources of a deployed cluster, read from the services."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tools.demo.inventory import Client
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.node_record import NodeRecord


@dataclass(frozen=True)
class DeployedCluster:
    """The resources of one stack in an account, read from the services by their IDs in the stack."""

    client: Client
    stack_name: str

    @cached_property
    def resources(self) -> Sequence[dict[str, Any]]:
        """The stack's resources, from CloudFormation."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.stack_name)
        return [resource for page in pages for resource in page["StackResourceSummaries"]]

    def ids(self, resource_type: str) -> list[str]:
        """The physical IDs of the stack's resources of a type."""
        return [
            resource["PhysicalResourceId"] for resource in self.resources if resource["ResourceType"] == resource_type
        ]

    @cached_property
    def outputs(self) -> Sequence[dict[str, str]]:
        stacks = self.client("cloudformation").describe_stacks(StackName=self.stack_name)["Stacks"]
        return stacks[0].get("Outputs", [])

    @cached_property
    def vpcs(self) -> Sequence[dict[str, Any]]:
        return self._described("Vpcs", "describe_vpcs", "VpcIds", "AWS::EC2::VPC")

    @cached_property
    def subnets(self) -> Sequence[dict[str, Any]]:
        return self._described("Subnets", "describe_subnets", "SubnetIds", "AWS::EC2::Subnet")

    @cached_property
    def endpoints(self) -> Sequence[dict[str, Any]]:
        return self._described("VpcEndpoints", "describe_vpc_endpoints", "VpcEndpointIds", "AWS::EC2::VPCEndpoint")

    @cached_property
    def security_groups(self) -> Sequence[dict[str, Any]]:
        return self._described("SecurityGroups", "describe_security_groups", "GroupIds", "AWS::EC2::SecurityGroup")

    @cached_property
    def instances(self) -> Sequence[dict[str, Any]]:
        """The current instances of the stack's Auto Scaling groups."""
        names = self.ids("AWS::AutoScaling::AutoScalingGroup")
        groups = self.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=names)
        ids = [instance["InstanceId"] for group in groups["AutoScalingGroups"] for instance in group["Instances"]]
        pages = self.client("ec2").get_paginator("describe_instances").paginate(InstanceIds=ids) if ids else ()
        return [
            instance for page in pages for reservation in page["Reservations"] for instance in reservation["Instances"]
        ]

    @cached_property
    def volumes(self) -> Sequence[dict[str, Any]]:
        """The volumes of these instances."""
        attached = [
            {"Name": "attachment.instance-id", "Values": [instance["InstanceId"] for instance in self.instances]}
        ]
        return self.client("ec2").describe_volumes(Filters=attached)["Volumes"] if self.instances else []

    @cached_property
    def records(self) -> Sequence[NodeRecord]:
        """The records of the nodes."""
        s3 = self.client("s3")
        records: list[NodeRecord] = []
        for bucket in self.ids("AWS::S3::Bucket"):
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{RECORDS_PREFIX}/"):
                for item in page.get("Contents", []):
                    body = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
                    records.append(NodeRecord.from_json(body.decode()))
        return records

    def _described(self, answer: str, operation: str, argument: str, resource_type: str) -> Sequence[dict[str, Any]]:
        ids = self.ids(resource_type)
        # Without IDs, EC2 returns everything.
        return getattr(self.client("ec2"), operation)(**{argument: ids})[answer] if ids else []
