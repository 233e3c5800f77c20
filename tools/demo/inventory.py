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


@dataclass(frozen=True)
class Kind:
    """One kind of resource: the call that lists it, and the JMESPath of the IDs in its response."""

    name: str
    service: str
    operation: str
    ids: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


KINDS = (
    Kind("CloudFormation stacks", "cloudformation", "describe_stacks", "Stacks[].StackName"),
    Kind("VPCs", "ec2", "describe_vpcs", "Vpcs[].VpcId"),
    Kind("subnets", "ec2", "describe_subnets", "Subnets[].SubnetId"),
    Kind("route tables", "ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    Kind("network ACLs", "ec2", "describe_network_acls", "NetworkAcls[].NetworkAclId"),
    Kind("security groups", "ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    Kind("VPC endpoints", "ec2", "describe_vpc_endpoints", "VpcEndpoints[?State != 'deleted'].VpcEndpointId"),
    Kind("internet gateways", "ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    Kind("NAT gateways", "ec2", "describe_nat_gateways", "NatGateways[?State != 'deleted'].NatGatewayId"),
    Kind("Elastic IP addresses", "ec2", "describe_addresses", "Addresses[].AllocationId"),
    Kind("network interfaces", "ec2", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    Kind("placement groups", "ec2", "describe_placement_groups", "PlacementGroups[].GroupName"),
    Kind("launch templates", "ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateId"),
    # AWS lists terminated instances for about an hour. They are not billed.
    Kind(
        "instances", "ec2", "describe_instances", "Reservations[].Instances[?State.Name != 'terminated'][].InstanceId"
    ),
    Kind("volumes", "ec2", "describe_volumes", "Volumes[].VolumeId"),
    Kind("key pairs", "ec2", "describe_key_pairs", "KeyPairs[].KeyPairId"),
    Kind(
        "Auto Scaling groups", "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups[].AutoScalingGroupName"
    ),
    Kind("S3 buckets", "s3", "list_buckets", "Buckets[].Name"),
    Kind("FSx file systems", "fsx", "describe_file_systems", "FileSystems[].FileSystemId"),
    Kind("FSx backups", "fsx", "describe_backups", "Backups[].BackupId"),
    Kind("EFS file systems", "efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    Kind("Lambda functions", "lambda", "list_functions", "Functions[].FunctionName"),
    Kind("log groups", "logs", "describe_log_groups", "logGroups[].logGroupName"),
    Kind("EventBridge rules", "events", "list_rules", "Rules[].Name"),
    Kind("schedules", "scheduler", "list_schedules", "Schedules[].Name"),
    Kind("SNS topics", "sns", "list_topics", "Topics[].TopicArn"),
    Kind("CloudWatch alarms", "cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    Kind("dashboards", "cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"),
    Kind("budgets", "budgets", "describe_budgets", "Budgets[].BudgetName", {"AccountId": ACCOUNT_ID}),
    Kind("IAM roles", "iam", "list_roles", "Roles[].RoleName"),
    Kind("customer managed IAM policies", "iam", "list_policies", "Policies[].PolicyName", {"Scope": "Local"}),
    Kind("instance profiles", "iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    # Parameters under /aws are public and belong to another account.
    Kind("SSM parameters", "ssm", "describe_parameters", "Parameters[?!starts_with(Name, '/aws/')].Name"),
    Kind("job queues", "batch", "describe_job_queues", "jobQueues[].jobQueueName"),
    Kind(
        "service environments", "batch", "describe_service_environments", "serviceEnvironments[].serviceEnvironmentName"
    ),
    Kind("scheduling policies", "batch", "list_scheduling_policies", "schedulingPolicies[].arn"),
    # EKS deletes a cluster only without node groups.
    Kind("EKS clusters", "eks", "list_clusters", "clusters[]"),
    Kind("ECR repositories", "ecr", "describe_repositories", "repositories[].repositoryName"),
    Kind(
        f"anything tagged {CLUSTER_TAG}",
        "resourcegroupstaggingapi",
        "get_resources",
        "ResourceTagMappingList[].ResourceARN",
        {"TagFilters": [{"Key": CLUSTER_TAG}]},
    ),
)

Inventory = Mapping[str, frozenset[str]]
"""IDs by kind; an object's ID is `bucket/key`."""


def take_inventory(client: Client) -> Inventory:
    """The current resources of the account, without terminated instances."""
    inventory = {kind.name: frozenset(_ids(client(kind.service), kind)) for kind in KINDS}
    return inventory | {OBJECTS: frozenset(_objects(client("s3"), inventory["S3 buckets"]))}


def added(before: Inventory, after: Inventory) -> list[str]:
    """New resources as `kind: id`, sorted."""
    return sorted(f"{kind}: {identifier}" for kind, ids in after.items() for identifier in ids - before[kind])


def _ids(client: Any, kind: Kind) -> Iterator[str]:
    if client.can_paginate(kind.operation):
        yield from (
            identifier
            for identifier in client.get_paginator(kind.operation).paginate(**kind.arguments).search(kind.ids)
            if identifier
        )
    else:
        yield from jmespath.search(kind.ids, getattr(client, kind.operation)(**kind.arguments)) or ()


def _objects(s3: Any, buckets: Iterable[str]) -> Iterator[str]:
    for bucket in buckets:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        yield from (f"{bucket}/{key}" for key in pages.search("Contents[].Key") if key)
