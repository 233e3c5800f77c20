"""FleetGate: what it is told, and what it may do."""

from functools import cache

from tests.constructs.synth import Json, Template, as_list, as_text, new_stack, statements, synthesize
from trainium_cdk import FleetGate, NodeRecords


@cache
def gate() -> Template:
    stack = new_stack()
    FleetGate(
        stack,
        "Gate",
        group_name="fleet",
        nodes=4,
        launch_template_version="7",
        records=NodeRecords(stack, "Records"),
        timeout_minutes=30,
    )
    return synthesize(stack)


def resource() -> Json:
    (gate_resource,) = gate().resources("Custom::TrnFleetGate").values()
    return gate_resource


def of_watcher(template: Template) -> list[Json]:
    """What the watcher may do, but for its log."""
    return [
        statement
        for name, policy in template.resources("AWS::IAM::Policy").items()
        if "Watcher" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if not as_list(statement["Action"])[0].startswith("logs:")
    ]


def test_the_gate_knows_the_fleet_and_where_it_reports() -> None:
    properties = resource()["Properties"]
    assert {key: value for key, value in properties.items() if key != "ServiceToken"} == {
        "ServiceTimeout": str(35 * 60),
        "GroupName": "fleet",
        "Nodes": 4,
        "LaunchTemplateVersion": "7",
        "RecordsBucket": {"Ref": gate().logical_id("AWS::S3::Bucket")},
        "RecordsPrefix": "nodes",
        "TimeoutMinutes": 30,
    }


def test_cloudformation_waits_longer_than_the_gate() -> None:
    properties = resource()["Properties"]
    assert int(properties["ServiceTimeout"]) > 60 * properties["TimeoutMinutes"]


def test_the_watcher_may_do_all_it_needs_before_the_gate_is_tried() -> None:
    watcher = {name for name in gate().resources() if "Watcher" in name}
    assert watcher <= set(resource()["DependsOn"])


def test_the_watcher_may_look_and_call_itself_and_no_more() -> None:
    bucket = gate().logical_id("AWS::S3::Bucket")
    (function,) = [name for name in gate().resources("AWS::Lambda::Function") if "Watcher" in name]
    assert {(tuple(as_list(s["Action"])), as_text(s["Resource"])) for s in of_watcher(gate())} == {
        (("autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"), "*"),
        (("s3:ListBucket",), f"${{{bucket}.Arn}}"),
        (("s3:GetObject",), f"${{{bucket}.Arn}}/nodes/*"),
        (("lambda:InvokeFunction",), f"${{{function}.Arn}}"),
    }


def test_no_function_may_create_a_log_group() -> None:
    assert not [s for s in statements(gate()) if "logs:CreateLogGroup" in as_list(s["Action"])]


def test_one_invocation_lasts_as_long_as_lambda_allows() -> None:
    (timeout,) = [
        function["Properties"]["Timeout"]
        for name, function in gate().resources("AWS::Lambda::Function").items()
        if "Watcher" in name
    ]
    assert timeout == 15 * 60
