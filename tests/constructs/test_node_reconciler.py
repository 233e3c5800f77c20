"""NodeReconciler: what it is called for, and what it may do."""

from functools import cache

import pytest

from tests.constructs.synth import Json, Template, as_list, granted, new_stack, synthesize
from trainium_cdk.fleet.node_reconciler import NodeReconciler
from trainium_cdk.fleet.node_records import NodeRecords

BLOCK = "cr-0123456789abcdef0"
GROUP = "arn:aws:autoscaling:us-west-2:${AWS::AccountId}:autoScalingGroup:*:autoScalingGroupName/fleet"


@cache
def keeper(*, replacements: int = 2, capacity_block_id: str | None = None) -> Template:
    stack = new_stack()
    NodeReconciler(
        stack,
        "Nodes",
        group_name="fleet",
        cluster_name="pilot",
        records=NodeRecords(stack, "Records"),
        replacements=replacements,
        capacity_block_id=capacity_block_id,
    )
    return synthesize(stack)


def function() -> str:
    (name,) = [name for name in keeper().resources("AWS::Lambda::Function") if "Keeper" in name]
    return name


def statements(**settings: int) -> list[Json]:
    """What the keeper may do, but for its log."""
    return [
        statement
        for name, policy in keeper(**settings).resources("AWS::IAM::Policy").items()
        if "Keeper" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if not as_list(statement["Action"])[0].startswith("logs:")
    ]


def patterns(template: Template) -> dict[str, Json]:
    """Event patterns by their source."""
    rules = template.resources("AWS::Events::Rule").values()
    return {rule["Properties"]["EventPattern"]["source"][0]: rule["Properties"]["EventPattern"] for rule in rules}


def test_without_recovery_the_keeper_may_replace_nothing() -> None:
    assert granted(statements()) - granted(statements(replacements=0)) == {("autoscaling:SetInstanceHealth", GROUP)}


def test_it_may_write_two_tags_on_the_instances_of_its_cluster_alone() -> None:
    (statement,) = [s for s in statements() if s["Action"] == "ec2:CreateTags"]
    assert statement["Condition"] == {
        "StringEquals": {"aws:ResourceTag/trn:cluster": "pilot"},
        "ForAllValues:StringEquals": {"aws:TagKeys": ["trn:node", "trn:reason"]},
    }


def test_its_rules_match_records_of_its_bucket_and_terminations_in_its_group() -> None:
    assert patterns(keeper()) == {
        "aws.s3": {
            "source": ["aws.s3"],
            "detail-type": ["Object Created"],
            "detail": {
                "bucket": {"name": [{"Ref": keeper().logical_id("AWS::S3::Bucket")}]},
                "object": {"key": [{"prefix": "nodes/"}]},
            },
        },
        "aws.autoscaling": {
            "source": ["aws.autoscaling"],
            "detail-type": ["EC2 Instance Terminate Successful"],
            "detail": {"AutoScalingGroupName": ["fleet"]},
        },
    }


def test_its_rule_matches_the_end_of_its_capacity_block_under_both_names() -> None:
    pattern = patterns(keeper(capacity_block_id=BLOCK))["aws.ec2"]
    assert pattern["detail-type"] == [
        "Capacity Block Expiration Warning",
        "Capacity Block Reservation Expiration Warning",
    ]
    assert pattern["detail"] == {"capacity-reservation-id": [BLOCK]}


@pytest.mark.parametrize("capacity_block_id", [None, BLOCK])
def test_every_rule_calls_the_function_and_may(capacity_block_id: str | None) -> None:
    template = keeper(capacity_block_id=capacity_block_id)
    arn = {"Fn::GetAtt": [function(), "Arn"]}
    rules = template.resources("AWS::Events::Rule")
    assert all([target["Arn"] for target in rule["Properties"]["Targets"]] == [arn] for rule in rules.values())
    permissions = [p["Properties"] for p in template.resources("AWS::Lambda::Permission").values()]
    assert {p["SourceArn"]["Fn::GetAtt"][0] for p in permissions} == set(rules)
    assert all((p["Principal"], p["FunctionName"]) == ("events.amazonaws.com", arn) for p in permissions)
