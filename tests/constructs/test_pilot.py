"""Pilot: the end and the budget of a plan, and the permissions of the functions that keep them."""

import json
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from aws_cdk import Duration, Environment, RemovalPolicy, Stack, assertions
from aws_cdk import aws_athena as athena
from aws_cdk import aws_backup as backup
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from moto.iam.access_control import IAMPolicy, PermissionResult

from tests.constructs.plans import reserved
from tests.constructs.synth import (
    REGION,
    Json,
    Template,
    a_plan,
    as_list,
    as_text,
    cluster_template,
    new_app,
    new_stack,
    synthesize,
)
from trainium_cdk import Budget, NeuronFleet, PilotEnd, TrainiumCluster
from trainium_cdk.pilot.pilot import Pilot, budget_name
from trainium_cdk.pilot.pilot_props import PilotProps

FUNCTION, READINESS = "AWS::Lambda::Function", "Custom::TrnFleetReadiness"
ENDS: dict[str, Any] = {"ends": "40h"}
DESTROYED: dict[str, Any] = {**ENDS, "ends_action": "destroy"}
STOPS: dict[str, Any] = {"budget_usd": 500, "budget_action": "stop"}
BLOCK: dict[str, Any] = {"capacity": "capacity-block", **reserved("capacity-block")}


def only_resource(template: Template, kind: str, name: str) -> tuple[str, Json]:
    """Logical ID and definition of the only resource of a type whose id contains a name."""
    (match,) = [(i, resource) for i, resource in template.resources(kind).items() if name in i]
    return match


@cache
def variables(**settings: Any) -> dict[str, Any]:
    """Environment variables of the controller."""
    _, function = only_resource(cluster_template(**settings), FUNCTION, "Controller")
    return function["Properties"]["Environment"]["Variables"]


def allowed(function: str = "Controller", **settings: Any) -> dict[str, list[Json]]:
    """The statements of a function's role that allow each action."""
    _, policy = only_resource(cluster_template(**settings), "AWS::IAM::Policy", f"{function}Policy")
    by_action: dict[str, list[Json]] = {}
    for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
        for action in as_list(statement["Action"]):
            by_action.setdefault(action, []).append(statement)
    return by_action


@pytest.mark.parametrize("settings", [{}, {"budget_usd": 500}])
def test_plan_without_an_end_needs_no_schedule(settings: dict[str, Any]) -> None:
    assert "TOPIC" not in variables(**settings)
    schedules = cluster_template(**settings).resources("AWS::Scheduler::Schedule")
    assert not [name for name in schedules if "Metrics" not in name]


def test_budget_name_is_valid_for_any_stack_name() -> None:
    app = new_app()
    stacks = [Stack(app, "S" * length, env=Environment(region=REGION)) for length in (9, 128)]
    names = {budget_name(stack, "c" * 32, "notify") for stack in stacks}
    assert {len(name) for name in names} == {len(f"S{'S' * 8}-{'c' * 32}-us-west-2-notify-0123"), 100}
    assert all(re.search(f"-{'c' * 32}-us-west-2-notify-[0-9a-f]{{4}}$", name) for name in names)


@pytest.mark.parametrize(("year", "warnings"), [(2020, 1), (9000, 0)])
def test_end_that_has_passed_is_named(year: int, warnings: int) -> None:
    stack = Stack(new_app(), "Own", env=Environment(region=REGION))
    props = PilotProps(end=PilotEnd.at(datetime(year, 1, 2, tzinfo=UTC)))
    pilot = Pilot(stack, "Pilot", props=props, cluster_name="own")
    text = "the pilot ended at 2020-01-02"
    assert len([entry for entry in pilot.node.metadata if text in str(entry.data)]) == warnings


def test_controller_gets_the_end_in_utc_or_as_hours() -> None:
    assert variables(ends="2026-12-01T18:00 Europe/Berlin")["ENDS"] == "2026-12-01T17:00Z"
    assert variables(ends="2w")["ENDS"] == "336h"


def test_controller_may_resize_only_its_own_group() -> None:
    group = cluster_template(**ENDS).logical_id("AWS::AutoScaling::AutoScalingGroup")
    (statement,) = allowed(**ENDS)["autoscaling:SetDesiredCapacity"]
    assert as_text(statement["Resource"]).endswith(f":autoScalingGroup:*:autoScalingGroupName/${{{group}}}")
    assert statement["Condition"]["StringEquals"] == {"aws:ResourceTag/trn:cluster": "trn-pilot"}


@pytest.mark.parametrize("action", ["sns:TagResource", "sns:UntagResource"])
def test_controller_may_write_only_its_tags_and_topic(action: str) -> None:
    topic, _ = only_resource(cluster_template(**STOPS), "AWS::SNS::Topic", "Notices")
    (statement,) = allowed(**STOPS)[action]
    assert as_text(statement["Resource"]) == f"${{{topic}}}"
    assert set(statement["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]) == {
        "trn:stopped",
        "trn:notified",
        "trn:spent",
        "trn:idle",
    }


def test_function_that_may_delete_the_stack_exists_only_with_destroy() -> None:
    assert not [name for name in cluster_template(**ENDS).resources(FUNCTION) if "StackDeletion" in name]
    (statement,) = allowed("StackDeletion", **DESTROYED)["cloudformation:DeleteStack"]
    assert statement["Resource"] == {"Ref": "AWS::StackId"}
    assert "cloudformation:DeleteStack" not in allowed(**DESTROYED)


def test_only_the_controller_may_invoke_the_deletion() -> None:
    template = cluster_template(**DESTROYED)
    deletion, function = only_resource(template, FUNCTION, "StackDeletion")
    assert variables(**DESTROYED)["STACK_DELETION"] == {"Fn::GetAtt": [deletion, "Arn"]}
    assert function["Properties"]["Environment"]["Variables"]["ENDS"] == variables(**DESTROYED)["ENDS"]
    statements = [s for s in allowed(**DESTROYED)["lambda:InvokeFunction"] if deletion in as_text(s["Resource"])]
    assert [as_text(statement["Resource"]) for statement in statements] == [f"${{{deletion}.Arn}}"]
    permitted = [p["Properties"]["FunctionName"] for p in template.resources("AWS::Lambda::Permission").values()]
    assert not [name for name in permitted if deletion in as_text(name)]


def test_functions_that_end_the_pilot_read_the_start_of_the_capacity_block() -> None:
    settings = {**DESTROYED, **BLOCK}
    _, deletion = only_resource(cluster_template(**settings), FUNCTION, "StackDeletion")
    of_functions = [deletion["Properties"]["Environment"]["Variables"], variables(**settings)]
    assert [found["CAPACITY_BLOCK"] for found in of_functions] == [BLOCK["reservation_id"]] * 2
    for function in ("StackDeletion", "Controller"):
        assert "ec2:DescribeCapacityReservations" in allowed(function, **settings)


OWN_STACK = "arn:aws:cloudformation:us-west-2:123456789012:stack/TrnClusterStack/11111111"


@pytest.mark.parametrize(
    ("action", "stack", "permitted"),
    [
        ("cloudformation:DeleteStack", OWN_STACK, True),
        ("cloudformation:DescribeStacks", OWN_STACK, True),
        ("cloudformation:UpdateStack", OWN_STACK, False),
        ("cloudformation:DeleteStack", f"{OWN_STACK}1", False),  # A stack of the same name, created later.
        ("cloudformation:DeleteStack", OWN_STACK.replace("TrnClusterStack", "Foreign"), False),
        ("cloudformation:DeleteStack", OWN_STACK.replace("us-west-2", "us-east-1"), False),
        ("cloudformation:DeleteStack", OWN_STACK.replace("123456789012", "210987654321"), False),
        ("cloudformation:DeleteStack", "*", False),
        ("iam:PassRole", "*", False),
        ("ec2:TerminateInstances", "*", False),
    ],
)
def test_policy_evaluator_permits_deletion_of_only_the_own_stack(action: str, stack: str, permitted: bool) -> None:
    """Uses moto's evaluator, which covers actions and resources; the statements under test have no conditions."""
    _, policy = only_resource(cluster_template(**DESTROYED), "AWS::IAM::Policy", "StackDeletionPolicy")
    statements = [
        {**statement, "Resource": as_text(statement["Resource"]).replace("${AWS::StackId}", OWN_STACK)}
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "Condition" not in statement
    ]
    document = {"policy_document": json.dumps({"Version": "2012-10-17", "Statement": statements})}
    result = IAMPolicy(document).is_action_permitted(action, stack)
    assert (result == PermissionResult.PERMITTED) is permitted


@pytest.mark.parametrize("settings", [DESTROYED, STOPS, BLOCK], ids=str)
def test_controller_may_neither_change_a_stack_nor_pass_a_role(settings: dict[str, Any]) -> None:
    assert allowed(**settings).keys() <= {
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "autoscaling:SetDesiredCapacity",
        "autoscaling:SetInstanceHealth",
        "cloudformation:DescribeStacks",
        "ec2:CreateTags",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeInstances",
        "ec2:GetConsoleOutput",
        "lambda:InvokeFunction",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
        "sns:ListTagsForResource",
        "sns:Publish",
        "sns:TagResource",
        "sns:UntagResource",
    }


@pytest.mark.parametrize("settings", [ENDS, STOPS, BLOCK], ids=str)
def test_nodes_are_launched_after_the_schedule_that_ends_them(settings: dict[str, Any]) -> None:
    template = cluster_template(**settings, cloudwatch_metrics="none")
    assert template.logical_id("AWS::Scheduler::Schedule") in template.before(template.logical_id(READINESS))


def test_deployment_has_the_settings_of_the_controller() -> None:
    """A changed end therefore causes a look at once, and a rollback acts by the former settings."""
    assert cluster_template(**STOPS).properties(READINESS)["Settings"] == variables(**STOPS)


def subscribers(**settings: Any) -> dict[tuple[str, int], str]:
    """The address of each notification of the budget, by type and percentage."""
    notices = cluster_template(**settings).properties("AWS::Budgets::Budget")["NotificationsWithSubscribers"]
    return {
        (n["Notification"]["NotificationType"], n["Notification"]["Threshold"]): as_text(n["Subscribers"][0]["Address"])
        for n in notices
    }


@pytest.mark.parametrize("settings", [{"budget_usd": 500}, STOPS], ids=str)
def test_actual_and_forecast_thresholds_are_reported(settings: dict[str, Any]) -> None:
    notices, _ = only_resource(cluster_template(**settings), "AWS::SNS::Topic", "Notices")
    shown = subscribers(**settings)
    assert shown["ACTUAL", 80] == shown["FORECASTED", 100] == f"${{{notices}}}"
    assert len(shown) == 3


def test_only_a_spent_budget_reaches_the_controller() -> None:
    template = cluster_template(**STOPS)
    spent, _ = only_resource(template, "AWS::SNS::Topic", "Spent")
    assert [key for key, address in subscribers(**STOPS).items() if address == f"${{{spent}}}"] == [("ACTUAL", 100)]
    _, own = only_resource(template, "AWS::SNS::Subscription", "Controller")
    assert (own["Properties"]["Protocol"], as_text(own["Properties"]["TopicArn"])) == ("lambda", f"${{{spent}}}")


def test_controller_identifies_its_budget_by_name() -> None:
    budget = cluster_template(**STOPS).properties("AWS::Budgets::Budget")["Budget"]
    assert variables(**STOPS)["BUDGET"] == budget["BudgetName"]


def test_changed_budget_action_creates_a_new_budget() -> None:
    names = {
        cluster_template(budget_usd=500, budget_action=action).properties("AWS::Budgets::Budget")["Budget"][
            "BudgetName"
        ]
        for action in ("notify", "stop")
    }
    assert len(names) == 2


@pytest.mark.parametrize("settings", [{"budget_usd": 500}, STOPS], ids=str)
def test_topics_accept_messages_of_own_budgets_over_tls(settings: dict[str, Any]) -> None:
    template = cluster_template(**settings)
    policies = template.resources("AWS::SNS::TopicPolicy").values()
    assert len(policies) == len(template.resources("AWS::SNS::Topic"))
    for policy in policies:
        deny, allow, *_ = policy["Properties"]["PolicyDocument"]["Statement"]
        assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
        assert allow["Principal"] == {"Service": "budgets.amazonaws.com"}
        assert allow["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}


@pytest.mark.parametrize("settings", [ENDS, STOPS, {"budget_usd": 500}], ids=str)
def test_failing_controller_alarms_the_topic(settings: dict[str, Any]) -> None:
    template = cluster_template(**settings, cloudwatch_metrics="none")
    topic, _ = only_resource(template, "AWS::SNS::Topic", "Notices")
    alarms = [alarm["Properties"] for alarm in template.resources("AWS::CloudWatch::Alarm").values()]
    function, _ = only_resource(template, FUNCTION, "Controller")
    assert {alarm["Dimensions"][0]["Value"]["Ref"] for alarm in alarms} == {function}
    assert all((alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Errors") for alarm in alarms)
    assert all(as_text(address) == f"${{{topic}}}" for alarm in alarms for address in alarm["AlarmActions"])
    policies = [policy["Properties"] for policy in template.resources("AWS::SNS::TopicPolicy").values()]
    (policy,) = (policy for policy in policies if as_text(policy["Topics"][0]) == f"${{{topic}}}")
    (allow,) = (
        s
        for s in policy["PolicyDocument"]["Statement"]
        if s.get("Principal") == {"Service": "cloudwatch.amazonaws.com"}
    )
    assert allow["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    source = as_text(allow["Condition"]["ArnLike"]["aws:SourceArn"])
    assert source.endswith(":cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*")


def test_budget_depends_on_policies_of_its_topics() -> None:
    template = cluster_template(**STOPS)
    before = template.before(template.logical_id("AWS::Budgets::Budget"))
    assert template.resources("AWS::SNS::TopicPolicy").keys() <= before


@pytest.fixture(scope="module")
def with_notices() -> tuple[Template, Stack]:
    """A fleet whose notices go to a topic of the app with a key."""
    stack = Stack(new_app(), "Own", env=Environment(region=REGION))
    key: Any = kms.Key(stack, "Key")
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=ec2.InstanceType("trn1.2xlarge"),
        vpc=ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1),
        budget=Budget.usd(100, stop=True),
        notices=sns.Topic(stack, "Ours", master_key=key),
    )
    fleet.add_outputs()
    return synthesize(stack), stack


def test_notices_and_alarms_go_to_the_topic_of_the_app(with_notices: tuple[Template, Stack]) -> None:
    template, _ = with_notices
    ours, _ = only_resource(template, "AWS::SNS::Topic", "Ours")
    own, _ = only_resource(template, "AWS::SNS::Topic", "Notices")
    _, function = only_resource(template, FUNCTION, "Controller")
    settings = function["Properties"]["Environment"]["Variables"]
    assert (settings["TOPIC"], settings["NOTICES"]) == ({"Ref": own}, {"Ref": ours})
    alarms = template.resources("AWS::CloudWatch::Alarm").values()
    assert [alarm["Properties"]["AlarmActions"] for alarm in alarms] == [[{"Ref": ours}]] * 5
    subscribers = json.dumps(template.properties("AWS::Budgets::Budget")["NotificationsWithSubscribers"])
    assert ours in subscribers
    assert own not in subscribers
    outputs = template.json["Outputs"].values()
    assert {as_text(output["Value"]) for output in outputs if "topic" in output["Description"]} == {
        f"${{{own}}}",
        f"${{{ours}}}",
    }


def test_publishers_of_notices_may_use_the_topic_of_the_app_and_its_key(with_notices: tuple[Template, Stack]) -> None:
    template, _ = with_notices
    ours, _ = only_resource(template, "AWS::SNS::Topic", "Ours")
    _, policy = only_resource(template, "AWS::SNS::TopicPolicy", "Ours")
    key = template.properties("AWS::KMS::Key")["KeyPolicy"]["Statement"]
    for statements in (policy["Properties"]["PolicyDocument"]["Statement"], key):
        services = {name for statement in statements for name in as_list(statement["Principal"].get("Service", []))}
        assert {"budgets.amazonaws.com", "cloudwatch.amazonaws.com"} <= services
    _, allowed_to_controller = only_resource(template, "AWS::IAM::Policy", "ControllerRoleDefaultPolicy")
    granted = json.dumps(allowed_to_controller["Properties"]["PolicyDocument"])
    assert all(name in granted for name in (ours, "sns:Publish", "kms:GenerateDataKey"))


def test_imported_topic_of_notices_is_named_with_what_its_policy_must_allow() -> None:
    stack = Stack(new_app(), "Own", env=Environment(region=REGION))
    topic = sns.Topic.from_topic_arn(stack, "Ours", f"arn:aws:sns:{REGION}:123456789012:ours")
    pilot = Pilot(stack, "Pilot", props=PilotProps(budget=Budget.usd(1), notices=topic), cluster_name="own")
    warned = [str(entry.data) for entry in pilot.node.metadata if entry.type == "aws:cdk:warning"]
    for service in ("budgets", "cloudwatch"):
        assert any("imported topic Own/Ours" in text and f"{service}.amazonaws.com" in text for text in warned)


def test_destroy_names_resources_of_the_app_whose_content_blocks_the_deletion() -> None:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    end = PilotEnd.after(Duration.hours(8), action="destroy")
    NeuronFleet(stack, "Fleet", instance_type=ec2.InstanceType("trn1.32xlarge"), vpc=vpc, end=end)
    s3.Bucket(stack, "Blocks", removal_policy=RemovalPolicy.DESTROY)
    s3.CfnBucket(stack, "BlocksToo")
    s3.Bucket(stack, "Kept")
    s3.Bucket(stack, "Emptied", removal_policy=RemovalPolicy.DESTROY, auto_delete_objects=True)
    ecr.Repository(stack, "Images", removal_policy=RemovalPolicy.DESTROY)
    ecr.Repository(stack, "EmptiedImages", removal_policy=RemovalPolicy.DESTROY, empty_on_delete=True)
    ecr.Repository(stack, "KeptImages")
    athena.CfnWorkGroup(stack, "Queries", name="queries")
    athena.CfnWorkGroup(stack, "EmptiedQueries", name="emptied", recursive_delete_option=True)
    backup.BackupVault(stack, "Vault", removal_policy=RemovalPolicy.DESTROY)
    blocking = {"Blocks/Resource", "BlocksToo", "Images/Resource", "Queries", "Vault/Resource"}
    named = warnings_of_content(stack)
    assert named.keys() == {f"/{stack.node.path}/{path}" for path in blocking}
    assert "ECR repository is not empty then; set empty_on_delete=True" in named[f"/{stack.node.path}/Images/Resource"]
    assert "empty it before the end" in named[f"/{stack.node.path}/Vault/Resource"]


def test_destroy_of_a_planned_cluster_names_buckets_of_the_app() -> None:
    stack = new_stack()
    TrainiumCluster(stack, "Cluster", plan=a_plan(ends="8h", ends_action="destroy"))
    s3.Bucket(stack, "Blocks", removal_policy=RemovalPolicy.DESTROY)
    assert warnings_of_content(stack).keys() == {f"/{stack.node.path}/Blocks/Resource"}


def warnings_of_content(stack: Stack) -> dict[str, str]:
    found = assertions.Annotations.from_stack(stack).find_warning("*", assertions.Match.any_value())
    return {entry.id: str(entry.entry.data) for entry in found if "trn:end.content" in str(entry.entry.data)}
