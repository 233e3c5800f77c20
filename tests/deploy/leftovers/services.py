"""Auto Scaling groups, and what runs or is stored beside the nodes."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from tests.deploy.leftovers.maker import Creator, Maker
from trainium_runtime.naming import CLUSTER_TAG


def _group(maker: Maker) -> str:
    name = maker.name("group")
    (image, *_) = maker.client("ec2").describe_images(Owners=["amazon"])["Images"]
    data = {"InstanceType": "t3.micro", "ImageId": image["ImageId"]}
    maker.client("ec2").create_launch_template(LaunchTemplateName=f"for-{name}", LaunchTemplateData=data)
    tag = {"Key": CLUSTER_TAG, "Value": maker.cluster, "PropagateAtLaunch": False}
    maker.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=0,
        LaunchTemplate={"LaunchTemplateName": f"for-{name}", "Version": "$Latest"},
        VPCZoneIdentifier=maker.create_subnet(),
        Tags=[tag],
    )
    return name


def _zipped(code: str) -> bytes:
    file = zipfile.ZipInfo("index.py")
    file.external_attr = 0o644 << 16
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(file, code)
    return packed.getvalue()


def _function(maker: Maker) -> str:
    name = maker.name("function")
    maker.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=maker.create_role(),
        Handler="index.handler",
        Code={"ZipFile": _zipped("def handler(event, context):\n    pass\n")},
        Tags=maker.tag_map,
    )
    return name


def _log_group(maker: Maker) -> str:
    """As Lambda creates it automatically: without a tag."""
    name = f"/aws/lambda/{maker.name('Controller')}"
    maker.client("logs").create_log_group(logGroupName=name)
    return name


def _parameter(maker: Maker) -> str:
    name = f"/{maker.name('parameter')}"
    maker.client("ssm").put_parameter(Name=name, Type="String", Value="x", Tags=maker.tags)
    return name


def _rule(maker: Maker) -> str:
    name = maker.name("rule")
    maker.client("events").put_rule(Name=name, ScheduleExpression="rate(1 hour)", Tags=maker.tags)
    return name


def _schedule(maker: Maker) -> str:
    name = maker.name("clock")
    target = {"Arn": "arn:aws:lambda:us-west-2:123456789012:function:x", "RoleArn": "arn:aws:iam::123456789012:role/x"}
    maker.client("scheduler").create_schedule(
        Name=name, ScheduleExpression="rate(5 minutes)", FlexibleTimeWindow={"Mode": "OFF"}, Target=target
    )
    return name


def _topic(maker: Maker) -> str:
    maker.client("sns").create_topic(Name=maker.name("topic"), Tags=maker.tags)
    return maker.name("topic")


def _alarm(maker: Maker) -> str:
    parameters: dict[str, Any] = {"Namespace": "AWS/Events", "MetricName": "TriggeredRules", "Statistic": "Sum"}
    parameters |= {"Period": 300, "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "GreaterThanThreshold"}
    maker.client("cloudwatch").put_metric_alarm(AlarmName=maker.name("alarm"), Tags=maker.tags, **parameters)
    return maker.name("alarm")


def _dashboard(maker: Maker) -> str:
    maker.client("cloudwatch").put_dashboard(DashboardName=maker.name("dashboard"), DashboardBody='{"widgets": []}')
    return maker.name("dashboard")


def _budget(maker: Maker) -> str:
    name = maker.name("budget")
    budget: dict[str, Any] = {"BudgetName": name, "BudgetType": "COST", "TimeUnit": "MONTHLY"}
    budget["BudgetLimit"] = {"Amount": "100", "Unit": "USD"}
    maker.client("budgets").create_budget(AccountId="123456789012", Budget=budget)
    return name


SERVICES: Mapping[str, Creator] = {
    "Auto Scaling group": _group,
    "Lambda function": _function,
    "log group": _log_group,
    "SSM parameter": _parameter,
    "EventBridge rule": _rule,
    "schedule": _schedule,
    "SNS topic": _topic,
    "CloudWatch alarm": _alarm,
    "CloudWatch dashboard": _dashboard,
    "budget": _budget,
}
