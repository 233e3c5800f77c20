"""NeuronFleet in a user's app: grants, keys, ports, metrics, events and tags."""

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest
from aws_cdk import Duration, Environment, RemovalPolicy, Stack, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from moto import mock_aws
from moto.events.models import EventPattern

from tests.constructs.synth import (
    REGION,
    ROOT,
    Json,
    Template,
    as_list,
    as_text,
    new_app,
    new_stack,
    references,
    synthesize,
)
from tests.runtime.handlers.fleet import BUCKET, GROUP, NOON, PREFIX, Fleet, client
from tests.wheel.typed_uses import give_everything
from trainium_cdk import (
    Budget,
    Capacity,
    CompileCache,
    NeuronFleet,
    PilotEnd,
    SetupScript,
)
from trainium_core.permissions.roles import action
from trainium_runtime.controller.controller import ClusterController
from trainium_runtime.controller.settings import ControllerSettings
from trainium_runtime.launch_template_version import RESOURCE_TYPE
from trainium_runtime.naming import CLUSTER_TAG, NODE_REASON_TAG, NODE_STATE_TAG
from trainium_runtime.node_store import NodeStore

LAUNCH_TEMPLATE, SCALING_GROUP = "AWS::EC2::LaunchTemplate", "AWS::AutoScaling::AutoScalingGroup"
KEY = "AWS::KMS::Key"
OTHER_ACCOUNT = "444455556666"


@cache
def app(team: str = "ml") -> Template:
    """The template of an app with a VPC of two zones, a load balancer, a key, and a fleet in the second zone."""
    made = new_app()
    stack = Stack(made, "Web", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
    key: Any = kms.Key(stack, "Key")
    data = s3.Bucket(stack, "Data", encryption_key=key)
    callers = ec2.SecurityGroup(stack, "Callers", vpc=vpc)
    ec2_service: Any = iam.ServicePrincipal("ec2.amazonaws.com")
    role = iam.Role(stack, "NodeRole", assumed_by=ec2_service)
    topic: Any = sns.Topic(stack, "Topic")
    cache = CompileCache(stack, "Cache", encryption_key=key, removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=ec2.InstanceType("trn1.32xlarge"),
        nodes=2,
        cluster_name="web-train",
        capacity=Capacity.on_demand(),
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2b"]),
        cache=cache,
        role=role,
        volume_key=key,
        block_devices=[ec2.BlockDevice(device_name="/dev/sdf", volume=ec2.BlockDeviceVolume.ebs(100))],
        setup=SetupScript.from_text("echo $DATA"),
        environment={"DATA": data.s3_url_for_object(), "NOTE": "it's"},
    )
    fleet.connections.allow_from(callers, ec2.Port.tcp(8080))
    data.grant_read(fleet)
    fleet.cache.grant_read(iam.Role.from_role_arn(stack, "Evaluator", f"arn:aws:iam::{OTHER_ACCOUNT}:role/evaluator"))
    fleet.metric_failed_nodes().create_alarm(stack, "Bad", threshold=1, evaluation_periods=1)
    fleet.on_node_failed("Page", targets.SnsTopic(topic))
    fleet.add_outputs()
    elbv2.ApplicationLoadBalancer(stack, "Balancer", vpc=vpc).add_listener("Http", port=80).add_targets(
        "Nodes", port=8080, targets=[fleet]
    )
    Tags.of(made).add("team", team)
    return synthesize(stack)


def launch_template_data() -> Json:
    return app().properties(LAUNCH_TEMPLATE)["LaunchTemplateData"]


def statements_of(role: str) -> list[Json]:
    """The statements of the policies of a role, by the prefix of its logical ID."""
    policies = app().resources("AWS::IAM::Policy").values()
    return [
        statement
        for policy in policies
        if any(role in name for name in references(policy["Properties"]["Roles"]))
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def test_grant_to_fleet_is_on_its_role_and_the_key() -> None:
    reading, decrypting = (
        [statement for statement in statements_of("NodeRole") if action in as_list(statement["Action"])]
        for action in ("s3:GetObject*", "kms:Decrypt")
    )
    assert any(name.startswith("Data") for name in references(reading))
    assert decrypting


def test_auto_scaling_may_use_the_key_of_the_volumes() -> None:
    statements = app().properties(KEY)["KeyPolicy"]["Statement"]
    of_auto_scaling = [s for s in statements if "AWSServiceRoleForAutoScaling" in json.dumps(s)]
    actions = {action for statement in of_auto_scaling for action in as_list(statement["Action"])}
    assert {"kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKey*"} <= actions
    volumes = [mapping["Ebs"] for mapping in launch_template_data()["BlockDeviceMappings"]]
    assert [volume["VolumeSize"] for volume in volumes] == [512, 100]
    for volume in volumes:
        assert volume["Encrypted"]
        assert references(volume["KmsKeyId"]) == {app().logical_id(KEY)}


def test_ports_are_opened_in_the_group_of_the_nodes() -> None:
    (nodes,) = [name for name in app().resources("AWS::EC2::SecurityGroup") if name.startswith("FleetSecurityGroup")]
    rules = [rule["Properties"] for rule in app().resources("AWS::EC2::SecurityGroupIngress").values()]
    opened = [rule for rule in rules if rule.get("FromPort") == 8080 and references(rule["GroupId"]) == {nodes}]
    sources = {name for rule in opened for name in references(rule["SourceSecurityGroupId"])}
    assert {name[:7] for name in sources} == {"Callers", "Balance"}


def test_nodes_are_registered_with_the_target_group() -> None:
    target_group = app().logical_id("AWS::ElasticLoadBalancingV2::TargetGroup")
    assert app().properties(SCALING_GROUP)["TargetGroupARNs"] == [{"Ref": target_group}]
    assert app().properties("AWS::ElasticLoadBalancingV2::TargetGroup")["TargetType"] == "instance"


def test_failed_nodes_in_the_log_are_counted_by_cluster_name() -> None:
    counted = app().properties("AWS::Logs::MetricFilter")
    assert references(counted["LogGroupName"]) == {name for name in references(counted) if "Controller" in name}
    assert counted["FilterPattern"] == '{ $.record.state = "failed" }'
    (metric,) = counted["MetricTransformations"]
    (alarm,) = [each["Properties"] for name, each in app().resources("AWS::CloudWatch::Alarm").items() if "Bad" in name]
    assert (alarm["Namespace"], alarm["MetricName"]) == (metric["MetricNamespace"], metric["MetricName"])
    assert metric["MetricNamespace"] == "TrainiumCdk/web-train"


def failure_rule() -> Json:
    """The properties of the rule that `on_node_failed` has added."""
    (rule,) = [rule for name, rule in app().resources("AWS::Events::Rule").items() if name.startswith("FleetPage")]
    return rule["Properties"]


def test_tag_of_failed_node_of_this_cluster_is_sent_to_target() -> None:
    assert failure_rule()["EventPattern"]["detail"]["tags"] == {"trn:cluster": ["web-train"], "trn:node": ["failed"]}
    (target,) = failure_rule()["Targets"]
    assert references(target["Arn"]) == {app().logical_id("AWS::SNS::Topic")}


def tag_change(instance: str) -> Json:
    """The event of an instance whose tags changed (EventBridge User Guide, Tag Change on Resource)."""
    (description,) = client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    tags = {tag["Key"]: tag["Value"] for tag in description["Tags"]}
    return {
        "source": "aws.tag",
        "detail-type": "Tag Change on Resource",
        "resources": [f"arn:aws:ec2:{REGION}:123456789012:instance/{instance}"],
        "detail": {
            "changed-tag-keys": [NODE_STATE_TAG, NODE_REASON_TAG],
            "service": "ec2",
            "resource-type": "instance",
            "version": 1,
            "tags": tags,
        },
    }


@mock_aws
def test_rule_matches_tags_of_a_failed_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # Takes seconds.
    nodes = Fleet(nodes=2, region=REGION)
    verified, failed = nodes.instances
    client("ec2").create_tags(Resources=nodes.instances, Tags=[{"Key": CLUSTER_TAG, "Value": "web-train"}])
    nodes.verify(verified, connected=False)
    nodes.fail(failed, "no driver")
    store = NodeStore(client("s3"), BUCKET, PREFIX)
    settings = ControllerSettings(cluster="web-train", stack_id="", group=GROUP, records_bucket=BUCKET, replacements=1)
    ClusterController(settings, client, store).look({}, now=NOON)
    pattern = EventPattern.load(json.dumps(failure_rule()["EventPattern"]))
    assert [pattern.matches_event(tag_change(instance)) for instance in (verified, failed)] == [False, True]


def test_tags_of_the_app_reach_instances_volumes_and_interfaces() -> None:
    for specification in launch_template_data()["TagSpecifications"]:
        assert {"Key": "team", "Value": "ml"} in specification["Tags"]
        assert {"Key": "trn:cluster", "Value": "web-train"} in specification["Tags"]


def test_changed_tag_of_the_app_requires_no_new_nodes() -> None:
    for kind in (RESOURCE_TYPE, "AWS::EC2::PlacementGroup"):
        assert app().properties(kind) == app("web").properties(kind)


def test_variables_with_and_without_tokens_reach_the_nodes() -> None:
    user_data = launch_template_data()["UserData"]["Fn::Base64"]["Fn::Join"][1]
    (encoded,) = [part for part in user_data if "Fn::Base64" in part]
    assert as_text(encoded["Fn::Base64"]) == f"s3://${{{_bucket('Data')}}}"
    assert any("NOTE=aXQncw==" in part for part in user_data if isinstance(part, str))


def test_variables_key_and_volumes_decide_whether_nodes_are_replaced() -> None:
    uses = app().properties(RESOURCE_TYPE)["Uses"]
    assert as_text(uses["environment_DATA"]) == f"s3://${{{_bucket('Data')}}}"
    assert {"volume_key", "block_devices"} <= uses.keys()


def test_parameters_of_cdk_interfaces_accept_their_classes() -> None:
    """pyright checks the types in tests/wheel/typed_uses.py, whose code this test runs."""
    stack = new_stack()
    ec2_service: Any = iam.ServicePrincipal("ec2.amazonaws.com")
    give_everything(stack, ec2_service)
    assert {"Fleet", "Imported", "Training"} <= {child.node.id for child in stack.node.children}


def _bucket(prefix: str) -> str:
    (name,) = [name for name in app().resources("AWS::S3::Bucket") if name.startswith(prefix)]
    return name


def fleet_in(stack: Stack, **props: Any) -> NeuronFleet:
    """A fleet of one trn1.32xlarge in a new VPC of the stack."""
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    return NeuronFleet(stack, "Fleet", instance_type=ec2.InstanceType("trn1.32xlarge"), vpc=vpc, **props)


@pytest.fixture(scope="module")
def bare() -> tuple[Stack, NeuronFleet]:
    """A stack, and its fleet, whose records have a key. The fleet has an added group, and a role may run its jobs."""
    stack = new_stack()
    fleet = fleet_in(stack, encryption_key=kms.Key(stack, "Key"))
    pipeline: Any = iam.AccountRootPrincipal()
    fleet.grant_run_jobs(iam.Role(stack, "Pipeline", assumed_by=pipeline))
    fleet.add_to_role_policy(iam.PolicyStatement(actions=["dynamodb:GetItem"], resources=["*"]))
    fleet.add_security_group(ec2.SecurityGroup.from_security_group_id(stack, "More", "sg-0123456789abcdef0"))
    return stack, fleet


def allowed_to(template: Template, role: str, action: str) -> list[Any]:
    return [
        statement
        for policy in template.resources("AWS::IAM::Policy").values()
        if any(name.startswith(role) for name in references(policy["Properties"]["Roles"]))
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if action in as_list(statement["Action"])
    ]


def test_records_with_a_key_are_read_and_written_with_it(bare: tuple[Stack, NeuronFleet]) -> None:
    template = synthesize(bare[0])
    (rules,) = [
        bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        for name, bucket in template.resources("AWS::S3::Bucket").items()
        if name.startswith("FleetRecords")
    ]
    assert references(rules) == {template.logical_id(KEY)}
    for role in ("FleetRole", "FleetController", "Pipeline"):
        assert allowed_to(template, role, "kms:Decrypt"), role
    for role in ("FleetRole", "Pipeline"):
        assert allowed_to(template, role, "kms:GenerateDataKey*"), role
    assert allowed_to(template, "FleetController", "kms:GenerateDataKey")  # it writes the membership


def test_grantee_may_run_jobs_of_this_fleet_only(bare: tuple[Stack, NeuronFleet]) -> None:
    template = synthesize(bare[0])
    (writing,) = allowed_to(template, "Pipeline", "s3:PutObject")
    assert {name[:12] for name in references(writing)} == {"FleetRecords"}
    assert '"/jobs/*"' in json.dumps(writing)
    (records,) = allowed_to(template, "Pipeline", "ssm:GetParametersByPath")
    assert re.findall(r":parameter(/[^\"]+)", json.dumps(records["Resource"])) == ["/trn", "/trn/*"]
    (finding,) = allowed_to(template, "Pipeline", "cloudformation:DescribeStacks")
    assert all(
        action(name).access in ("Read", "List") and name.partition(":")[0] not in ("s3", "logs", "ssm")
        for name in finding["Action"]
    )


@pytest.mark.parametrize("role", ["FleetRole", "NodeRole"])
@pytest.mark.parametrize(
    "key",
    [
        "inputs/job/words",
        "inputs/job/folder/outputs/x",
        "jobs/job/job.json",
        "jobs/job/source.tar.gz",
        "jobs/job/stop.json",
        "submitted/job",
    ],
)
def test_nodes_may_not_write_objects_of_operators(bare: tuple[Stack, NeuronFleet], role: str, key: str) -> None:
    """IAM's `*` also matches slashes."""
    template = synthesize(bare[0]) if role == "FleetRole" else app()
    written = json.dumps([statement["Resource"] for statement in allowed_to(template, role, "s3:PutObject")])
    patterns = re.findall(r'"/([^"]+)"', written)
    assert any(fnmatchcase("jobs/job/outputs/x", pattern) for pattern in patterns)
    assert not [pattern for pattern in patterns if fnmatchcase(key, pattern)]


def test_added_group_is_on_every_interface_and_replaces_nodes(bare: tuple[Stack, NeuronFleet]) -> None:
    template = synthesize(bare[0])
    interfaces = template.properties(LAUNCH_TEMPLATE)["LaunchTemplateData"]["NetworkInterfaces"]
    assert [interface["Groups"][1:] for interface in interfaces] == [["sg-0123456789abcdef0"]] * 8
    assert template.properties(RESOURCE_TYPE)["Uses"]["security_group_1"] == "sg-0123456789abcdef0"


def test_publishers_of_warnings_may_use_the_key() -> None:
    stack = new_stack()
    end, budget = PilotEnd.after(Duration.hours(8)), Budget.usd(100, stop=True)
    fleet_in(stack, encryption_key=kms.Key(stack, "Key"), end=end, budget=budget)
    template = synthesize(stack)
    topics = template.resources("AWS::SNS::Topic").values()
    assert [references(topic["Properties"]["KmsMasterKeyId"]) for topic in topics] == [{template.logical_id(KEY)}] * 2
    statements = template.properties(KEY)["KeyPolicy"]["Statement"]
    publishers = [s["Principal"] for s in statements if "kms:GenerateDataKey*" in s["Action"]]
    services = {name for principal in publishers for name in as_list(principal.get("Service", []))}
    assert {"budgets.amazonaws.com", "cloudwatch.amazonaws.com"} <= services
    (publishing,) = allowed_to(template, "FleetController", "sns:Publish")
    assert references(publishing["Resource"]) <= set(template.resources("AWS::SNS::Topic"))
    assert allowed_to(template, "FleetController", "kms:GenerateDataKey")


def test_idle_limit_is_a_setting_of_the_controller() -> None:
    pilot = fleet_in(new_stack(), idle_limit=Duration.hours(2)).pilot
    assert pilot
    assert pilot.settings["IDLE_MINUTES"] == "120"


def test_aspect_in_the_docs_changes_the_logs_of_all_functions() -> None:
    stack = new_stack()
    fleet_in(stack)
    page = (ROOT / "docs/reference/constructs.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page.partition("\n## Log groups\n")[2], re.DOTALL)
    exec(code, {"stack": stack})
    template = synthesize(stack)
    groups = template.resources("AWS::Logs::LogGroup").values()
    assert {group["Properties"]["RetentionInDays"] for group in groups} == {365}
    assert {name for group in groups for name in references(group["Properties"]["KmsKeyId"])} == {
        template.logical_id(KEY)
    }
    assert any(name.startswith("TrainiumCdkSleepSwitch") for name in template.resources("AWS::Logs::LogGroup"))


def test_fleet_has_a_default_child_and_added_statements(bare: tuple[Stack, NeuronFleet]) -> None:
    assert bare[1].node.default_child.ref == bare[1].auto_scaling_group_name
    assert allowed_to(synthesize(bare[0]), "FleetRole", "dynamodb:GetItem")


def test_other_value_of_the_cluster_tag_fails_synthesis() -> None:
    stack = new_stack()
    Tags.of(fleet_in(stack, cluster_name="ours")).add(CLUSTER_TAG, "theirs")
    with pytest.raises(RuntimeError, match="got 'theirs' as the tag trn:cluster; allowed: 'ours'"):
        synthesize(stack)


def test_destroy_in_a_stack_protected_later_fails_synthesis() -> None:
    stack = new_stack()
    fleet_in(stack, end=PilotEnd.after(Duration.hours(8), action="destroy"))
    stack.termination_protection = True
    with pytest.raises(RuntimeError, match="end: got destroy with termination_protection=True"):
        synthesize(stack)


SIZE_CHANGES: dict[str, Callable[[Any], object]] = {
    "ScheduledAction": lambda group: group.scale_on_schedule(
        "Night", schedule=autoscaling.Schedule.cron(hour="20", minute="0"), desired_capacity=0
    ),
    "ScalingPolicy": lambda group: group.scale_on_cpu_utilization("Busy", target_utilization_percent=50),
    "WarmPool": lambda group: group.add_warm_pool(),
}


@pytest.mark.parametrize("kind", SIZE_CHANGES)
def test_change_of_the_size_of_the_group_fails_synthesis(kind: str) -> None:
    stack = new_stack()
    SIZE_CHANGES[kind](fleet_in(stack).auto_scaling_group)
    with pytest.raises(RuntimeError, match=f"got {kind} on the Auto Scaling group of a fleet"):
        synthesize(stack)
