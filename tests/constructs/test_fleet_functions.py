"""The functions of a fleet in the template of a cluster: their permissions, and what depends on them."""

import json
from typing import Any

import pytest

from tests.constructs.plans import RESERVATION
from tests.constructs.synth import Json, Template, a_plan, cluster_template, granted
from trainium_core.facts import facts
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime.handlers import quota_check
from trainium_runtime.naming import METRICS_EVENT
from trainium_runtime.quota_need import QuotaNeed

QUOTA_CHECK, READINESS = "Custom::TrnQuotaCheck", "Custom::TrnFleetReadiness"
GROUP, SCHEDULE = "AWS::AutoScaling::AutoScalingGroup", "AWS::Scheduler::Schedule"
OF_THE_CLUSTER = {"aws:ResourceTag/trn:cluster": "trn-pilot"}


def allowed(template: Template, role: str) -> list[Json]:
    """The statements of the policies whose logical ID contains the name of a role."""
    return [
        statement
        for name, policy in template.resources("AWS::IAM::Policy").items()
        if role in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def controller_variables(**settings: Any) -> Json:
    functions = cluster_template(**settings).resources("AWS::Lambda::Function")
    (controller,) = [function for name, function in functions.items() if "Controller" in name]
    return controller["Properties"]["Environment"]["Variables"]


def of_nodes(**settings: Any) -> set[tuple[str, str]]:
    """The permissions of nodes on the bucket of their records and its objects, without the bucket's name."""
    template = cluster_template(**settings)
    (bucket,) = [name for name in template.resources("AWS::S3::Bucket") if "Records" in name]
    permissions = granted(allowed(template, "FleetRole"))
    return {(action, resource.partition(".Arn}")[2]) for action, resource in permissions if bucket in resource}


def test_service_timeout_exceeds_that_of_the_check() -> None:
    properties = cluster_template().properties(READINESS)
    assert int(properties["ServiceTimeout"]) > 60 * int(properties["TimeoutMinutes"])
    assert int(cluster_template().properties(QUOTA_CHECK)["ServiceTimeout"]) > quota_check.LONGEST_S


@pytest.mark.parametrize(("kind", "function"), [(QUOTA_CHECK, "Provider"), (READINESS, "FleetController")])
def test_functions_have_permissions_before_they_are_called(kind: str, function: str) -> None:
    template = cluster_template()
    (resource,) = template.resources(kind).values()
    needed = {name for name in template.resources() if function in name}
    assert needed <= {*resource["DependsOn"], template.logical_id(kind)}


def test_quota_check_has_the_need_of_the_plan() -> None:
    need = quota_need(a_plan())
    assert need is not None
    shown = {key: str(value) for key, value in cluster_template().properties(QUOTA_CHECK).items()}
    assert QuotaNeed.from_properties(shown) == need


def test_provider_may_only_read() -> None:
    actions = {action for action, _ in granted(allowed(cluster_template(), "Provider"))}
    reads = {action for action in actions if action.split(":")[1].startswith(("Get", "List", "Describe"))}
    assert actions - reads == {"logs:CreateLogStream", "logs:PutLogEvents"}


def test_quota_check_precedes_instances_and_depends_only_on_the_record() -> None:
    template = cluster_template()
    (name,) = template.resources(QUOTA_CHECK)
    assert name in template.before(template.logical_id(GROUP))
    own = {template.logical_id("AWS::SSM::Parameter")}
    assert all("Provider" in logical_id for logical_id in template.before(name) - own)


@pytest.mark.parametrize(
    "settings", [{"capacity": "reservation", "reservation_id": RESERVATION}, {"quota_check": False}], ids=str
)
def test_quota_check_is_omitted_with_nothing_to_check(settings: dict[str, Any]) -> None:
    assert not cluster_template(**settings).resources(QUOTA_CHECK)


def test_controller_may_replace_nodes_only_with_recovery() -> None:
    with_recovery, without = (
        granted(allowed(cluster_template(node_recovery=recovery), "FleetController")) for recovery in (True, False)
    )
    ((action, group),) = {grant for grant in with_recovery - without if grant[0].startswith("autoscaling:")}
    assert action == "autoscaling:SetInstanceHealth"
    assert cluster_template().logical_id(GROUP) in group


def test_controller_may_write_two_tags_on_only_its_own_instances() -> None:
    (statement,) = [s for s in allowed(cluster_template(), "FleetController") if s["Action"] == "ec2:CreateTags"]
    assert statement["Condition"] == {
        "StringEquals": OF_THE_CLUSTER,
        "ForAllValues:StringEquals": {"aws:TagKeys": ["trn:node", "trn:reason"]},
    }


def test_controller_may_read_only_the_consoles_of_its_cluster() -> None:
    (statement,) = [s for s in allowed(cluster_template(), "FleetController") if s["Action"] == "ec2:GetConsoleOutput"]
    assert statement["Condition"] == {"StringEquals": OF_THE_CLUSTER}


def test_controller_is_invoked_for_records_and_terminations() -> None:
    template = cluster_template()
    (controller,) = [name for name in template.resources("AWS::Lambda::Function") if "Controller" in name]
    (bucket,) = [name for name in template.resources("AWS::S3::Bucket") if "Records" in name]
    rules = [rule["Properties"] for rule in template.resources("AWS::Events::Rule").values()]
    called = [rule for rule in rules if rule["Targets"][0]["Arn"] == {"Fn::GetAtt": [controller, "Arn"]}]
    patterns = {rule["EventPattern"]["source"][0]: rule["EventPattern"] for rule in called}
    assert patterns.keys() == {"aws.s3", "aws.autoscaling"}
    assert patterns["aws.s3"]["detail"] == {
        "bucket": {"name": [{"Ref": bucket}]},
        "object": {"key": [{"prefix": "nodes/"}]},
    }
    assert patterns["aws.autoscaling"]["detail"] == {"AutoScalingGroupName": [{"Ref": template.logical_id(GROUP)}]}


def test_notices_of_jobs_add_only_the_objects_of_jobs_and_the_topic() -> None:
    template, without = cluster_template(job_notices=True), cluster_template()
    (bucket,) = [name for name in template.resources("AWS::S3::Bucket") if "Records" in name]
    (topic,) = template.resources("AWS::SNS::Topic")
    added = granted(allowed(template, "FleetController")) - granted(allowed(without, "FleetController"))
    assert added == {
        ("sns:Publish", f"${{{topic}}}"),
        ("s3:PutObject", f"${{{bucket}.Arn}}/jobs/*/notified"),
        *(("s3:GetObject", f"${{{bucket}.Arn}}/jobs/*/{name}") for name in ("job.json", "end.json", "notified")),
    }
    rules = [rule["Properties"]["EventPattern"]["detail"] for rule in template.resources("AWS::Events::Rule").values()]
    assert {"bucket": {"name": [{"Ref": bucket}]}, "object": {"key": [{"wildcard": "jobs/*/end.json"}]}} in rules
    assert template.resources(SCHEDULE).keys() == without.resources(SCHEDULE).keys()


def test_metrics_are_printed_on_a_schedule_that_names_the_time_of_the_run() -> None:
    schedule = cluster_template().properties(SCHEDULE)
    assert json.loads(schedule["Target"]["Input"]) == {METRICS_EVENT: "<aws.scheduler.scheduled-time>"}
    assert schedule["ScheduleExpression"] == f"rate({facts()['metrics']['minutes_between_runs']} minutes)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}


@pytest.mark.parametrize(
    ("settings", "metrics"),
    [({"nodes": 16}, "nodes"), ({"nodes": 17}, "cluster"), ({"nodes": 17, "cloudwatch_metrics": "nodes"}, "nodes")],
    ids=str,
)
def test_small_clusters_have_metrics_of_each_node(settings: dict[str, Any], metrics: str) -> None:
    assert controller_variables(**settings)["METRICS"] == metrics


def test_without_metrics_the_controller_reads_no_usage() -> None:
    without = cluster_template(cloudwatch_metrics="none")
    assert "METRICS" not in controller_variables(cloudwatch_metrics="none")
    assert not without.resources(SCHEDULE)
    read = granted(allowed(cluster_template(), "FleetController")) - granted(allowed(without, "FleetController"))
    assert [(action, resource.partition("/")[2]) for action, resource in read] == [("s3:GetObject", "usage/*")]


def test_only_nodes_with_internode_ssh_exchange_keys() -> None:
    assert of_nodes(internode_ssh=True) - of_nodes() == {
        ("s3:PutObject", "/ssh/${aws:userid}.json"),
        ("s3:GetObject", "/ssh/*"),
    }


def test_logs_and_jobs_expire_and_records_do_not() -> None:
    buckets = cluster_template().resources("AWS::S3::Bucket")
    (bucket,) = [bucket["Properties"] for name, bucket in buckets.items() if "Records" in name]
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert {(rule["Prefix"], rule["ExpirationInDays"]) for rule in rules} == {
        ("logs/", 30),
        ("jobs/", 90),
        ("inputs/", 90),
        ("submitted/", 90),
    }
