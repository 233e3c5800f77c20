"""The construct of a plan in an app of somebody else's: in which stack it may stand, and whose it is there."""

from functools import cache

import pytest
from aws_cdk import Environment, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match

from tests.constructs.synth import Template, a_plan, new_app, synthesize
from trainium_cdk import CompileCache
from trainium_cdk.fleet_parts import FleetParts
from trainium_cdk.planned_fleet import PlannedFleet
from trainium_cdk.sagemaker_training import PlannedTraining
from trainium_core import PlanError


def put_fleet(stack: Stack, **settings: object) -> Stack:
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    cache = CompileCache(stack, "Cache", removal_policy=RemovalPolicy.RETAIN)
    parts = FleetParts(vpc=vpc, subnet=vpc.private_subnets[0], cache=cache, egress="existing")
    PlannedFleet(stack, "Fleet", plan=a_plan(**settings), parts=parts)
    return stack


@cache
def fleet_of_a_team() -> Template:
    stack = Stack(new_app(), "Training", env=Environment(region="us-west-2"))
    return synthesize(put_fleet(stack, cluster_name="theirs", tags={"team": "ml"}))


@pytest.mark.parametrize("construct", [PlannedFleet, PlannedTraining])
def test_a_stack_for_another_region_than_the_plan_is_refused(construct: type) -> None:
    stack = Stack(new_app(), "Training", env=Environment(region="us-east-2"))
    with pytest.raises(
        PlanError, match=r"trn:region: got 'us-west-2'\n    allowed: us-east-2, the region of the stack"
    ):
        put_fleet(stack) if construct is PlannedFleet else PlannedTraining(stack, "Training", plan=a_plan())


def test_a_stack_for_any_region_gets_that_of_the_plan() -> None:
    stack = put_fleet(Stack(new_app(), "Training"))
    Annotations.from_stack(stack).has_warning(
        "/Training/Fleet", Match.string_like_regexp("the plan is for us-west-2, the stack for any region")
    )


def test_everything_of_a_fleet_has_its_clusters_tag_and_the_plans_and_nothing_else_has() -> None:
    for name, resource in fleet_of_a_team().resources().items():
        if resource["Type"] == "AWS::EC2::PlacementGroup":  # which another tag would replace
            assert resource["Properties"]["Tags"] == [{"Key": "trn:cluster", "Value": "theirs"}]
            continue
        tags = resource.get("Properties", {}).get("Tags")
        if tags is None:
            continue
        shown = {tag["Key"]: tag["Value"] for tag in tags}
        expected = {"trn:cluster": "theirs", "team": "ml"} if name.startswith("Fleet") else {}
        assert {key: shown[key] for key in ("trn:cluster", "team") if key in shown} == expected, name
