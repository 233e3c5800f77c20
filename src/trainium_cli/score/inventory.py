"""What there is in an account, asked service by service."""

from collections.abc import Callable
from typing import Any

import jmespath

from trainium_cli.score.outcome import NO_ANSWER

LISTS = (
    ("ec2", "describe_vpcs", "Vpcs[].VpcId"),
    ("ec2", "describe_subnets", "Subnets[].SubnetId"),
    ("ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    ("ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    ("ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    ("ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    ("ec2", "describe_network_acls", "NetworkAcls[].NetworkAclId"),
    ("ec2", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    ("ec2", "describe_addresses", "Addresses[].AllocationId"),
    ("ec2", "describe_volumes", "Volumes[].VolumeId"),
    ("ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateId"),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    ("ec2", "describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    ("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups[].AutoScalingGroupName"),
    ("autoscaling", "describe_launch_configurations", "LaunchConfigurations[].LaunchConfigurationName"),
    ("elbv2", "describe_load_balancers", "LoadBalancers[].LoadBalancerArn"),
    ("elbv2", "describe_target_groups", "TargetGroups[].TargetGroupArn"),
    ("iam", "list_roles", "Roles[].RoleName"),
    ("iam", "list_policies", "Policies[?starts_with(Arn, 'arn:aws:iam::1')].Arn"),
    ("iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    ("iam", "list_users", "Users[].UserName"),
    ("iam", "list_groups", "Groups[].GroupName"),
    ("s3", "list_buckets", "Buckets[].Name"),
    ("lambda", "list_functions", "Functions[].FunctionName"),
    ("logs", "describe_log_groups", "logGroups[?!starts_with(logGroupName, '/aws/')].logGroupName"),
    ("sqs", "list_queues", "QueueUrls"),
    ("sns", "list_topics", "Topics[].TopicArn"),
    ("dynamodb", "list_tables", "TableNames"),
    ("secretsmanager", "list_secrets", "SecretList[?!DeletedDate].Name"),
    ("ssm", "describe_parameters", "Parameters[?!starts_with(Name, '/aws/')].Name"),
    ("rds", "describe_db_instances", "DBInstances[].DBInstanceIdentifier"),
    ("rds", "describe_db_clusters", "DBClusters[].DBClusterIdentifier"),
    ("efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    ("fsx", "describe_file_systems", "FileSystems[].FileSystemId"),
    ("ecs", "list_task_definitions", "taskDefinitionArns"),
    ("eks", "list_clusters", "clusters"),
    ("batch", "describe_compute_environments", "computeEnvironments[].computeEnvironmentName"),
    ("sagemaker", "list_clusters", "ClusterSummaries[].ClusterName"),
    ("stepfunctions", "list_state_machines", "stateMachines[].name"),
    ("events", "list_rules", "Rules[].Name"),
    ("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    ("kms", "list_aliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName"),
)
"""What an account can be asked for without knowing a name: service, operation, and where the ids are in its answer.

What AWS makes by itself is not looked at: managed policies, AWS's keys and parameters, the log groups of its services.
"""


def inventory(client: Callable[[str], Any]) -> set[str]:
    """The ids of what is there, each after its service. client: gives a boto3 client for a service.

    What a server cannot list is not seen.
    """
    found: set[str] = set()
    for service, operation, ids in LISTS:
        try:
            answer = getattr(client(service), operation)()
        except NO_ANSWER:
            continue
        found |= {f"{service} {one}" for one in jmespath.search(ids, answer) or ()}
    return found
