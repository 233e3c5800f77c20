"""Grants, metrics and events of imported fleets."""

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Duration, Environment, Stack, Stage
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from tests.constructs.synth import new_app, new_stack, references, synthesize
from trainium_cdk import INeuronFleet, NeuronFleet, PilotEnd, PropsError

OTHER_ACCOUNT = "444455556666"

GRANTS: dict[str, Callable[[INeuronFleet, iam.IGrantable], iam.Grant]] = {
    "grant_run_jobs": lambda fleet, grantee: fleet.grant_run_jobs(grantee),
    "grant_operate": lambda fleet, grantee: fleet.grant_operate(grantee),
}


def imported_into(stack: Stack, fleet: NeuronFleet | None = None, **attributes: Any) -> INeuronFleet:
    """A fleet that is imported without its role and security group."""
    if fleet is not None and fleet.pilot is not None:
        attributes["pilot_topic_arn"] = fleet.pilot.topic.topic_arn
    return NeuronFleet.from_neuron_fleet_attributes(stack, "Imported", cluster_name="other", **attributes)


@pytest.mark.parametrize("grant", GRANTS)
def test_grants_on_an_imported_fleet_are_those_on_the_fleet(grant: str) -> None:
    stack = new_stack()
    anyone: Any = iam.AccountRootPrincipal()
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=ec2.InstanceType("trn1.32xlarge"),
        vpc=ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1),
        encryption_key=kms.Key(stack, "Key"),
        end=PilotEnd.after(Duration.hours(8)),
    )
    assert fleet._props.sleep
    imported = imported_into(
        stack,
        fleet,
        auto_scaling_group_name=fleet.auto_scaling_group_name,
        records_bucket=fleet.records.bucket,
        sleep_function_name=fleet._props.sleep.function_name,
    )
    for name, one in (("Own", fleet), ("Imports", imported)):
        GRANTS[grant](one, iam.Role(stack, name, assumed_by=anyone)).assert_success()
    template = synthesize(stack)
    own, imports = (
        [
            statement
            for policy in template.resources("AWS::IAM::Policy").values()
            if any(name.startswith(role) for name in references(policy["Properties"]["Roles"]))
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        for role in ("Own", "Imports")
    )
    assert len(own) > 3
    assert own == imports


NEEDED: dict[str, Callable[[INeuronFleet], object]] = {
    "auto_scaling_group_name": lambda fleet: fleet.metric("GroupInServiceInstances"),
    "role": lambda fleet: fleet.grant_principal,
    "security_group": lambda fleet: fleet.connections,
    "records_bucket": lambda fleet: fleet.grant_run_jobs(iam.AccountPrincipal(OTHER_ACCOUNT)),
    "controller_function_name": lambda fleet: fleet.metric_controller_errors(),
}


@pytest.mark.parametrize("attribute", NEEDED)
def test_imported_fleet_names_the_attribute_that_it_was_not_given(attribute: str) -> None:
    with pytest.raises(PropsError, match=f"^Stack/Imported: {attribute}: got None; .* fix: pass {attribute} to Neuron"):
        NEEDED[attribute](imported_into(new_stack()))


def test_grant_to_operate_an_imported_fleet_requires_its_sleep_function() -> None:
    stack = new_stack()
    fleet = imported_into(
        stack, auto_scaling_group_name="nodes", records_bucket=s3.Bucket.from_bucket_name(stack, "Records", "records")
    )
    with pytest.raises(PropsError, match="sleep_function_name: got None"):
        fleet.grant_operate(iam.AccountPrincipal(OTHER_ACCOUNT))


def test_fleet_imported_by_its_name_has_metrics_and_events_of_failed_nodes() -> None:
    stack = new_stack()
    fleet = imported_into(stack)
    fleet.metric_failed_nodes().create_alarm(stack, "Bad", threshold=1, evaluation_periods=1)
    fleet.on_node_failed("Page")
    template = synthesize(stack)
    assert template.properties("AWS::CloudWatch::Alarm")["Namespace"] == "TrainiumCdk/other"
    tags = template.properties("AWS::Events::Rule")["EventPattern"]["detail"]["tags"]
    assert tags["trn:cluster"] == ["other"]


METRICS: dict[str, Callable[[INeuronFleet], cloudwatch.Metric]] = {
    "of the group": lambda fleet: fleet.metric("GroupInServiceInstances"),
    "of the log": lambda fleet: fleet.metric_failed_nodes(),
    "of nodes": lambda fleet: fleet.metric_core_utilization(),
    "of the controller": lambda fleet: fleet.metric_controller_errors(),
}


@pytest.mark.parametrize("metric", METRICS)
def test_alarm_in_another_region_is_refused(metric: str) -> None:
    stack = new_stack()
    fleet = imported_into(stack, auto_scaling_group_name="nodes", controller_function_name="controller")
    other = Stack(stack.node.scope, "Other", env=Environment(region="us-east-1"))
    with pytest.raises(RuntimeError, match=f"AlarmRegionMismatch.*'us-east-1'.*'{stack.region}'"):
        METRICS[metric](fleet).create_alarm(other, "Bad", threshold=1, evaluation_periods=1)


@pytest.mark.parametrize("grant", ["grant_run_jobs", "grant_operate"])
def test_role_outside_the_stage_is_refused_with_the_grant_by_arn(grant: str) -> None:
    """The pipeline that deploys a Stage has its roles outside of it."""
    app = new_app()
    role = iam.Role(Stack(app, "Pipeline"), "Role", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
    stack = Stack(Stage(app, "Dev"), "Train")
    bucket = s3.Bucket.from_bucket_name(stack, "Records", "records")
    fleet = NeuronFleet.from_neuron_fleet_attributes(
        stack,
        "Fleet",
        cluster_name="train",
        records_bucket=bucket,
        auto_scaling_group_name="nodes",
        sleep_function_name="set-asleep",
    )
    with pytest.raises(PropsError, match=r"same Stage.*iam\.Role\.from_role_arn\(stack, 'Runner'"):
        getattr(fleet, grant)(role)
    getattr(fleet, grant)(iam.Role.from_role_arn(stack, "Runner", "arn:aws:iam::111122223333:role/jobs"))
