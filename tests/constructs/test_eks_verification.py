"""Node groups for EKS whose nodes are verified."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_eks as eks
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from cdk_nag import AwsSolutionsChecks
from moto.iam.access_control import IAMPolicy, PermissionResult

from tests.constructs.synth import REGION, Template, as_text, granted, new_app, new_stack, synthesize
from tests.constructs.test_eks import (
    GROUP,
    TEMPLATE,
    TRN1,
    existing_cluster,
    group_template,
    requests_errors,
    violations,
)
from tests.stacks.linting import CDK_WRITES_NEEDLESS_DEPENDENCIES, lint
from tests.userdata.parts import parts_of
from tools.lab.eks.kubernetes import problems
from trainium_cdk import NeuronNodeGroup, NodeChecks, NodeVerification
from trainium_cdk.eks.node_verification import let_guard_end_nodes
from trainium_core.permissions.roles import policies, role_scope
from trainium_core.plan import Plan

IMAGE = "111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1"


def verified_groups(stack: Stack, **props: Any) -> NodeVerification:
    """Two groups of a cluster with one verification."""
    cluster = existing_cluster(stack)
    verification = NodeVerification(stack, "Verification", image=IMAGE, **props)
    for name in ("One", "Two"):
        NeuronNodeGroup(
            stack, name, cluster=cluster, instance_type=TRN1, cluster_name=name.lower(), node_verification=verification
        )
    return verification


@cache
def verified() -> Template:
    stack = new_stack()
    NeuronNodeGroup(
        stack,
        "Group",
        cluster=existing_cluster(stack),
        instance_type=TRN1,
        node_verification=NodeVerification(stack, "Verification", image=IMAGE),
        quota_check=False,
    )
    return synthesize(stack)


def user_data(template: Template) -> str:
    return as_text(template.properties(TEMPLATE)["LaunchTemplateData"]["UserData"]["Fn::Base64"])


def test_instances_name_the_bucket_of_their_records() -> None:
    template = verified()
    specifications = template.properties(TEMPLATE)["LaunchTemplateData"]["TagSpecifications"]
    (tags,) = [one["Tags"] for one in specifications if one["ResourceType"] == "instance"]
    assert {"Key": "trn:records", "Value": {"Ref": template.logical_id("AWS::S3::Bucket")}} in tags


def test_user_data_name_bucket_role_and_script() -> None:
    template = verified()
    files = yaml.safe_load(parts_of(user_data(template))["text/cloud-config"])["write_files"]
    lines = dict(line.split("=", 1) for line in files[0]["content"].splitlines())
    assert lines.keys() == {"TRN_REGION", "TRN_REPORT_URL", "TRN_NODE_SCRIPT_URL", "TRN_ROLE_ID"}
    (bucket,) = template.resources("AWS::S3::Bucket")
    assert lines["TRN_REPORT_URL"] == f"s3://${{{bucket}}}/nodes"
    assert requests_errors(template) == []


def test_nodes_read_their_script_and_write_only_their_own_objects() -> None:
    (bucket,) = verified().resources("AWS::S3::Bucket")
    role = verified().properties(GROUP)["NodeRole"]["Fn::GetAtt"][0]
    (policy,) = [
        one["Properties"]
        for one in verified().resources("AWS::IAM::Policy").values()
        if {"Ref": role} in one["Properties"]["Roles"]
    ]
    allowed = granted(policy["PolicyDocument"]["Statement"])
    written = {resource for action, resource in allowed if action == "s3:PutObject"}
    assert written == {f"${{{bucket}.Arn}}/{name}" for name in ("nodes/${aws:userid}.json", "logs/${aws:userid}.log")}
    (read,) = [resource for action, resource in allowed if action == "s3:GetObject"]
    assert read.endswith(".sh")
    assert {action for action, _ in allowed} == {"s3:PutObject", "s3:GetObject"}


def test_guard_runs_every_15_minutes_with_the_bucket_of_the_records() -> None:
    template = verified()
    rule = template.properties("AWS::Events::Rule")
    (guard,) = [name for name in template.resources("AWS::Lambda::Function") if "Guard" in name]
    assert rule["ScheduleExpression"] == "rate(15 minutes)"
    assert [target["Arn"] for target in rule["Targets"]] == [{"Fn::GetAtt": [guard, "Arn"]}]
    permission = template.properties("AWS::Lambda::Permission")
    assert permission["SourceArn"] == {"Fn::GetAtt": [template.logical_id("AWS::Events::Rule"), "Arn"]}
    variables = template.resources()[guard]["Properties"]["Environment"]["Variables"]
    assert variables == {"RECORDS_BUCKET": {"Ref": template.logical_id("AWS::S3::Bucket")}}


def test_guard_reads_records_and_ends_only_nodes_of_its_groups() -> None:
    template = verified()
    (bucket,) = template.resources("AWS::S3::Bucket")
    (role,) = [name for name in template.resources("AWS::IAM::Role") if "Guard" in name]
    policies = template.resources("AWS::IAM::Policy").values()
    of_role = [one["Properties"] for one in policies if {"Ref": role} in one["Properties"]["Roles"]]
    allowed = [entry for policy in of_role for entry in policy["PolicyDocument"]["Statement"]]
    group = "arn:aws:autoscaling:us-west-2:${AWS::AccountId}:autoScalingGroup:*:autoScalingGroupName/eks-*"
    assert {one for one in granted(allowed) if not one[0].startswith("logs:")} == {
        ("s3:ListBucket", f"${{{bucket}.Arn}}"),
        ("s3:GetObject", f"${{{bucket}.Arn}}/nodes/*"),
        ("ec2:DescribeInstances", "*"),
        ("autoscaling:DescribeAutoScalingInstances", "*"),
        ("autoscaling:TerminateInstanceInAutoScalingGroup", group),
    }
    (ending,) = [entry for entry in allowed if entry["Action"] == "autoscaling:TerminateInstanceInAutoScalingGroup"]
    nodegroup = {"Fn::GetAtt": [template.logical_id(GROUP), "NodegroupName"]}
    tags = {"aws:ResourceTag/eks:cluster-name": "prod", "aws:ResourceTag/eks:nodegroup-name": nodegroup}
    assert ending["Condition"] == {"StringEquals": tags}


def test_printed_read_only_policy_permits_reading_records_and_nothing_else() -> None:
    name = as_text(verified().properties("AWS::S3::Bucket")["BucketName"])
    scope = role_scope(Plan.of(instance_type="trn1.32xlarge", region=REGION, stacks=("eks",), eks_cluster="prod"))
    arn = f"arn:aws:s3:::{name}"

    def permitted(action: str, resource: str) -> bool:
        documents = ({"policy_document": json.dumps(each)} for each in policies("read-only", scope))
        results = [IAMPolicy(each).is_action_permitted(action, resource) for each in documents]
        return PermissionResult.PERMITTED in results

    assert permitted("s3:ListBucket", arn)
    assert permitted("s3:GetObject", f"{arn}/nodes/AROA0123456789ABCDEF0:i-0123456789abcdef0.json")
    assert not permitted("s3:GetObject", f"{arn}/logs/AROA0123456789ABCDEF0:i-0123456789abcdef0.log")
    assert not permitted("s3:PutObject", f"{arn}/nodes/AROA0123456789ABCDEF0:i-0123456789abcdef0.json")
    assert not permitted("s3:ListBucket", "arn:aws:s3:::other")


def test_failing_guard_alarms_the_topic_of_the_app() -> None:
    stack = new_stack()
    key: Any = kms.Key(stack, "Key")
    NodeVerification(stack, "Verification", image=IMAGE, notices=sns.Topic(stack, "Ours", master_key=key))
    template = synthesize(stack)
    topic = {"Ref": template.logical_id("AWS::SNS::Topic")}
    alarm = template.properties("AWS::CloudWatch::Alarm")
    (guard,) = [name for name in template.resources("AWS::Lambda::Function") if "Guard" in name]
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": guard}}]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["AlarmActions"]) == ("AWS/Lambda", "Errors", [topic])
    (statement,) = template.properties("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    cloudwatch = {"Service": "cloudwatch.amazonaws.com"}
    assert (statement["Principal"], statement["Resource"]) == (cloudwatch, topic)
    of_key = template.properties("AWS::KMS::Key")["KeyPolicy"]["Statement"]
    assert cloudwatch in [each["Principal"] for each in of_key]


def test_groups_of_a_cluster_use_a_verification_of_an_earlier_stack() -> None:
    app = new_app()
    earlier, later = (Stack(app, name, env=Environment(region=REGION)) for name in ("Earlier", "Later"))
    verification = NodeVerification(earlier, "Verification", image=IMAGE)
    cluster = eks.CfnCluster(
        later,
        "Cluster",
        role_arn="arn:aws:iam::111122223333:role/eks",
        resources_vpc_config=eks.CfnCluster.ResourcesVpcConfigProperty(subnet_ids=[]),
    )
    let_guard_end_nodes(later, verification, cluster_name=cluster.ref, nodegroup_name="nodes")
    policy = synthesize(later).properties("AWS::IAM::Policy")
    assert "Earlier" in str(policy["Roles"])


def test_only_verified_groups_have_the_label_of_the_daemon_set() -> None:
    objects = NodeVerification(new_stack(), "Verification", image=IMAGE).objects
    (daemons,) = [one for one in objects if one["kind"] == "DaemonSet"]
    selector = daemons["spec"]["template"]["spec"]["nodeSelector"]
    assert selector.items() <= verified().properties(GROUP)["Labels"].items()
    assert not selector.keys() & group_template().properties(GROUP)["Labels"].keys()


def test_group_of_eks_has_no_taint_that_eks_would_set_again() -> None:
    (taint,) = verified().properties(GROUP)["Taints"]
    assert taint["Key"] == "aws.amazon.com/neuron"


def test_groups_share_a_bucket_that_outlives_them() -> None:
    stack = new_stack()
    verified_groups(stack)
    template = synthesize(stack)
    (bucket,) = template.resources("AWS::S3::Bucket")
    assert all(bucket in template.before(name) for name in template.resources(GROUP))


def test_chosen_checks_are_those_of_the_nodes() -> None:
    stack = new_stack()
    verified_groups(stack, checks=NodeChecks.observe(suppress=["time-sync"]))
    template = synthesize(stack)
    folder = template.file.parent
    scripts = [file.read_text() for file in folder.glob("asset.*.sh")]
    assert any('"verification": "observe"' in text and '"time-sync"' in text for text in scripts)


def test_manifest_is_one_document_that_kubernetes_accepts() -> None:
    manifest = json.loads(NodeVerification(new_stack(), "V", image=IMAGE, namespace="trn").manifest)
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "List")
    assert [problems(one) for one in manifest["items"]] == [[]] * 4
    assert {one["metadata"].get("namespace", "trn") for one in manifest["items"]} == {"trn"}


def test_cfn_lint_finds_only_needless_dependencies() -> None:
    assert {one.rule for one in lint(verified().file, REGION)} <= {CDK_WRITES_NEEDLESS_DEPENDENCIES}


def test_cloudformation_validate_and_cdk_nag_find_nothing(tmp_path: Path) -> None:
    app: App = new_app(tmp_path, validated=True)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    verified_groups(Stack(app, "Nodes", env=Environment(region=REGION)))
    app.synth()
    assert violations(tmp_path) == []
