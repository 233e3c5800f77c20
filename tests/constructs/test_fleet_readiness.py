"""FleetReadiness: its properties, and what it may do."""

from functools import cache

from tests.constructs.synth import Json, Template, as_list, granted, new_stack, statements, synthesize
from trainium_cdk.fleet.fleet_readiness import FleetReadiness
from trainium_cdk.fleet.node_reconciler import NodeReconciler
from trainium_cdk.fleet.node_records import NodeRecords


@cache
def gate() -> Template:
    stack = new_stack()
    records = NodeRecords(stack, "Records")
    keeper = NodeReconciler(stack, "Keeper", group_name="fleet", cluster_name="pilot", records=records, replacements=3)
    FleetReadiness(
        stack,
        "Gate",
        group_name="fleet",
        cluster_name="pilot",
        nodes="4",
        launch_template_version="7",
        records=records,
        reconciler=keeper,
        timeout_minutes=30,
    )
    return synthesize(stack)


def keeper() -> str:
    (function,) = [name for name in gate().resources("AWS::Lambda::Function") if "Keeper" in name]
    return function


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
        "Nodes": "4",
        "LaunchTemplateVersion": "7",
        "RecordsBucket": {"Ref": gate().logical_id("AWS::S3::Bucket")},
        "RecordsPrefix": "nodes",
        "Keeper": {"Fn::GetAtt": [keeper(), "Arn"]},
        "Replacements": 3,
        "TimeoutMinutes": 30,
    }


def test_cloudformation_waits_longer_than_the_gate() -> None:
    properties = resource()["Properties"]
    assert int(properties["ServiceTimeout"]) > 60 * properties["TimeoutMinutes"]


def test_watcher_and_keeper_may_do_all_they_need_before_the_gate_is_tried() -> None:
    needed = {name for name in gate().resources() if "Watcher" in name or "Keeper" in name}
    assert needed <= set(resource()["DependsOn"])


def test_the_gate_may_read_size_its_group_call_itself_and_the_keeper_and_no_more() -> None:
    bucket = gate().logical_id("AWS::S3::Bucket")
    (function,) = [name for name in gate().resources("AWS::Lambda::Function") if "Watcher" in name]
    assert granted(of_watcher(gate())) == {
        ("autoscaling:DescribeAutoScalingGroups", "*"),
        ("autoscaling:DescribeScalingActivities", "*"),
        (
            "autoscaling:SetDesiredCapacity",
            "arn:aws:autoscaling:us-west-2:${AWS::AccountId}:autoScalingGroup:*:autoScalingGroupName/fleet",
        ),
        ("cloudformation:DescribeStacks", "${AWS::StackId}"),
        ("ec2:DescribeInstances", "*"),
        ("s3:ListBucket", f"${{{bucket}.Arn}}"),
        ("s3:GetObject", f"${{{bucket}.Arn}}/nodes/*"),
        ("s3:GetObject", f"${{{bucket}.Arn}}/cluster.json"),
        ("ec2:GetConsoleOutput", "arn:aws:ec2:us-west-2:${AWS::AccountId}:instance/*"),
        ("lambda:InvokeFunction", f"${{{keeper()}.Arn}}"),
        ("lambda:InvokeFunction", f"${{{function}.Arn}}"),
    }


def test_the_watcher_may_read_the_consoles_of_its_cluster_alone() -> None:
    (statement,) = [s for s in of_watcher(gate()) if s["Action"] == "ec2:GetConsoleOutput"]
    assert statement["Condition"] == {"StringEquals": {"aws:ResourceTag/trn:cluster": "pilot"}}


def test_no_function_may_create_a_log_group() -> None:
    assert not [s for s in statements(gate()) if "logs:CreateLogGroup" in as_list(s["Action"])]


def test_one_invocation_lasts_as_long_as_lambda_allows() -> None:
    (timeout,) = [
        function["Properties"]["Timeout"]
        for name, function in gate().resources("AWS::Lambda::Function").items()
        if "Watcher" in name
    ]
    assert timeout == 15 * 60
