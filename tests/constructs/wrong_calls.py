"""Wrong uses of a fleet that is made or imported, each with the parameter and a part of what is said to do."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from tests.constructs.wrong_objects import vpc_beside
from tests.constructs.wrong_parts import a_cache, made, nothing, records
from tests.constructs.wrong_use import TRN1, ZONE_B, a_group_by_its_id, place, unique
from trainium_cdk import INeuronFleet, NeuronFleet


@cache
def a_fleet() -> NeuronFleet:
    return made(NeuronFleet, instance_type=ec2.InstanceType(TRN1), vpc=place().vpc, vpc_subnets=ZONE_B)


def imported(**props: Any) -> INeuronFleet:
    role = iam.Role.from_role_name(place().stack, unique("Role"), "nodes")
    given: dict[str, Any] = {"cluster_name": "training", "auto_scaling_group_name": "nodes", "role": role, **props}
    return NeuronFleet.from_neuron_fleet_attributes(
        place().stack, unique("Fleet"), security_group=a_group_by_its_id(), **given
    )


def a_target_group(**props: Any) -> elbv2.ApplicationTargetGroup:
    return made(elbv2.ApplicationTargetGroup, **{"vpc": place().vpc, "port": 80, **props})


def a_network_target_group(**props: Any) -> elbv2.NetworkTargetGroup:
    return made(elbv2.NetworkTargetGroup, **{"vpc": place().vpc, "port": 80, **props})


def target_group_elsewhere() -> elbv2.IApplicationTargetGroup:
    arn = "arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/nodes/0123456789abcdef"
    return elbv2.ApplicationTargetGroup.from_target_group_attributes(
        place().stack, unique("Imported"), target_group_arn=arn
    )


def function_of_no_role() -> Any:
    arn = "arn:aws:lambda:us-west-2:444455556666:function:reader"
    return lambda_.Function.from_function_arn(place().stack, unique("Function"), arn)


CALLS: Mapping[str, tuple[Callable[[], object], str, str]] = {
    "fleet elsewhere by its role's name": (lambda: imported(role="nodes"), "role", "give an iam.IRole"),
    "fleet elsewhere of no name": (lambda: imported(cluster_name="Web Train"), "cluster_name", "1 to 32 lower-case"),
    "failures to nowhere": (lambda: a_fleet().on_node_failed("Page", nothing("topic")), "target", "events.IRuleTarget"),
    "metric of no name": (lambda: a_fleet().metric(""), "metric_name", "GroupInServiceInstances"),
    "metric of another period": (lambda: a_fleet().metric("X", period=60), "options", "those of cloudwatch.Metric"),
    "cache for a function of no role": (
        lambda: a_cache().grant_read(function_of_no_role()),
        "grantee",
        "imported without a role",
    ),
    "records for a function of no role": (
        lambda: records().grant_read(function_of_no_role()),
        "grantee",
        "imported without a role",
    ),
    "metric of 45 seconds": (
        lambda: a_fleet().metric("X", period=Duration.seconds(45)),
        "options",
        "a multiple of 60 seconds",
    ),
    "failures by a number": (
        lambda: a_fleet().on_node_failed("Number", description=nothing(3)),
        "description",
        "what the rule is for, as text",
    ),
    "failures by the id of a part": (lambda: a_fleet().on_node_failed("Gate"), "construct_id", "such as NodeFailed"),
    "failures by the id of a later part": (
        lambda: a_fleet().on_node_failed("FailedNodes"),
        "construct_id",
        "no other part of the fleet",
    ),
    "outputs twice": (lambda: [a_fleet().add_outputs() for _ in range(2)], "add_outputs", "remove the second call"),
    "target group of nothing": (
        lambda: a_fleet().attach_to_network_target_group(nothing()),
        "target_group",
        "an elbv2.INetworkTargetGroup",
    ),
    "target group of addresses": (
        lambda: a_fleet().attach_to_application_target_group(a_target_group(target_type=elbv2.TargetType.IP)),
        "target_group",
        "target_type=elbv2.TargetType.INSTANCE",
    ),
    "network target group of a load balancer": (
        lambda: a_fleet().attach_to_network_target_group(a_network_target_group(target_type=elbv2.TargetType.ALB)),
        "target_group",
        "of the target type instance",
    ),
    "target group of another VPC": (
        lambda: a_fleet().attach_to_application_target_group(a_target_group(vpc=place().other_vpc)),
        "target_group",
        "make it with that vpc",
    ),
    "network target group of another VPC": (
        lambda: a_fleet().attach_to_network_target_group(a_network_target_group(vpc=place().other_vpc)),
        "target_group",
        "make it with that vpc",
    ),
    "target group of another stack's VPC": (
        lambda: a_fleet().attach_to_application_target_group(a_target_group(vpc=vpc_beside())),
        "target_group",
        "make it with that vpc",
    ),
    "target group of another region": (
        lambda: a_fleet().attach_to_application_target_group(target_group_elsewhere()),
        "target_group",
        "give a target group of that region",
    ),
    "target group of the other kind": (
        lambda: a_fleet().attach_to_application_target_group(nothing(a_network_target_group())),
        "target_group",
        "an elbv2.IApplicationTargetGroup",
    ),
    "network target group of the other kind": (
        lambda: a_fleet().attach_to_network_target_group(nothing(a_target_group())),
        "target_group",
        "an elbv2.INetworkTargetGroup",
    ),
}
