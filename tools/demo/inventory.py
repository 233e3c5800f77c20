"""An inventory of an account in one region by kind of resource, for comparing two points in time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath

from trainium_local.environment import ACCOUNT_ID
from trainium_runtime.naming import CLUSTER_TAG

Client = Callable[[str], Any]
"""Returns the boto3 client of a service."""

OBJECTS = "S3 objects"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of resource: the call that lists it, and the JMESPath of the ids in its response."""

    name: str
    service: str
    operation: str
    ids: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _ec2(name: str, operation: str, ids: str) -> Kind:
    return Kind(name=name, service="ec2", operation=operation, ids=ids)


KINDS = (
    Kind(name="CloudFormation stacks", service="cloudformation", operation="describe_stacks", ids="Stacks[].StackName"),
    _ec2("VPCs", "describe_vpcs", "Vpcs[].VpcId"),
    _ec2("subnets", "describe_subnets", "Subnets[].SubnetId"),
    _ec2("route tables", "describe_route_tables", "RouteTables[].RouteTableId"),
    _ec2("network ACLs", "describe_network_acls", "NetworkAcls[].NetworkAclId"),
    _ec2("security groups", "describe_security_groups", "SecurityGroups[].GroupId"),
    _ec2("VPC endpoints", "describe_vpc_endpoints", "VpcEndpoints[?State != 'deleted'].VpcEndpointId"),
    _ec2("internet gateways", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    _ec2("NAT gateways", "describe_nat_gateways", "NatGateways[?State != 'deleted'].NatGatewayId"),
    _ec2("Elastic IP addresses", "describe_addresses", "Addresses[].AllocationId"),
    _ec2("network interfaces", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    _ec2("placement groups", "describe_placement_groups", "PlacementGroups[].GroupName"),
    _ec2("launch templates", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateId"),
    _ec2(
        "instances",
        "describe_instances",
        # AWS lists terminated instances for an hour; they are not billed.
        "Reservations[].Instances[?State.Name != 'terminated'][].InstanceId",
    ),
    _ec2("volumes", "describe_volumes", "Volumes[].VolumeId"),
    _ec2("key pairs", "describe_key_pairs", "KeyPairs[].KeyPairId"),
    Kind(
        name="Auto Scaling groups",
        service="autoscaling",
        operation="describe_auto_scaling_groups",
        ids="AutoScalingGroups[].AutoScalingGroupName",
    ),
    Kind(name="S3 buckets", service="s3", operation="list_buckets", ids="Buckets[].Name"),
    Kind(name="FSx file systems", service="fsx", operation="describe_file_systems", ids="FileSystems[].FileSystemId"),
    Kind(name="FSx backups", service="fsx", operation="describe_backups", ids="Backups[].BackupId"),
    Kind(name="EFS file systems", service="efs", operation="describe_file_systems", ids="FileSystems[].FileSystemId"),
    Kind(name="Lambda functions", service="lambda", operation="list_functions", ids="Functions[].FunctionName"),
    Kind(name="log groups", service="logs", operation="describe_log_groups", ids="logGroups[].logGroupName"),
    Kind(name="EventBridge rules", service="events", operation="list_rules", ids="Rules[].Name"),
    Kind(name="schedules", service="scheduler", operation="list_schedules", ids="Schedules[].Name"),
    Kind(name="SNS topics", service="sns", operation="list_topics", ids="Topics[].TopicArn"),
    Kind(
        name="budgets",
        service="budgets",
        operation="describe_budgets",
        ids="Budgets[].BudgetName",
        arguments={"AccountId": ACCOUNT_ID},
    ),
    Kind(name="IAM roles", service="iam", operation="list_roles", ids="Roles[].RoleName"),
    Kind(
        name="own IAM policies",
        service="iam",
        operation="list_policies",
        ids="Policies[].PolicyName",
        arguments={"Scope": "Local"},
    ),
    Kind(
        name="instance profiles",
        service="iam",
        operation="list_instance_profiles",
        ids="InstanceProfiles[].InstanceProfileName",
    ),
    Kind(
        name="own SSM parameters",
        service="ssm",
        operation="describe_parameters",
        # Parameters under /aws are public and belong to another account.
        ids="Parameters[?!starts_with(Name, '/aws/')].Name",
    ),
    Kind(
        name="ECR repositories",
        service="ecr",
        operation="describe_repositories",
        ids="repositories[].repositoryName",
    ),
    Kind(
        name=f"anything tagged {CLUSTER_TAG}",
        service="resourcegroupstaggingapi",
        operation="get_resources",
        ids="ResourceTagMappingList[].ResourceARN",
        arguments={"TagFilters": [{"Key": CLUSTER_TAG}]},
    ),
)

Inventory = Mapping[str, frozenset[str]]
"""Ids by kind; an object's id is `bucket/key`."""


def take_inventory(client: Client) -> Inventory:
    """The current resources of the account, without terminated instances."""
    found = {kind.name: frozenset(_ids(client(kind.service), kind)) for kind in KINDS}
    return found | {OBJECTS: frozenset(_objects(client("s3"), found["S3 buckets"]))}


def added(before: Inventory, after: Inventory) -> list[str]:
    """New resources as `kind: id`, sorted."""
    return sorted(f"{kind}: {one}" for kind, ids in after.items() for one in ids - before[kind])


def _ids(client: Any, kind: Kind) -> Iterator[str]:
    if client.can_paginate(kind.operation):
        yield from (
            one for one in client.get_paginator(kind.operation).paginate(**kind.arguments).search(kind.ids) if one
        )
    else:
        yield from jmespath.search(kind.ids, getattr(client, kind.operation)(**kind.arguments)) or ()


def _objects(s3: Any, buckets: Iterable[str]) -> Iterator[str]:
    for bucket in buckets:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        yield from (f"{bucket}/{key}" for key in pages.search("Contents[].Key") if key)
