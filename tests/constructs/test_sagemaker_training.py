"""SageMaker training: permissions of the jobs, queue and alerts."""

import json
import re
from typing import Any

import pytest
from moto.events.models import EventPattern

from tests.constructs.synth import EXISTING_NETWORK, Json, Template, a_plan, as_list, as_text, new_stack
from tests.constructs.training import KMS_KEY, training_template
from trainium_cdk.sagemaker.sagemaker_training import PlannedTraining
from trainium_core import PlanError
from trainium_core.naming import training_job_prefix

JOB_ROLE = "Execution"


def policy_of(template: Template, role: str) -> list[Json]:
    """The statements of the role whose logical ID contains a name."""
    return [
        statement
        for policy in template.resources("AWS::IAM::Policy").values()
        if any(role in name["Ref"] for name in policy["Properties"]["Roles"])
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def resources_for(action: str, template: Template, role: str = JOB_ROLE) -> list[str]:
    """Every resource on which a role may use an action."""
    return [
        as_text(resource)
        for statement in policy_of(template, role)
        if action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    ]


def role(template: Template, name: str) -> Json:
    (role,) = [r["Properties"] for key, r in template.resources("AWS::IAM::Role").items() if name in key]
    return role


def store(template: Template) -> str:
    (name,) = [name for name in template.resources("AWS::S3::Bucket") if "CompileCache" not in name]
    return name


def test_role_is_assumed_by_sagemaker_for_this_account_only() -> None:
    (statement,) = role(training_template(), JOB_ROLE)["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    conditions = {key: {k: as_text(v) for k, v in test.items()} for key, test in statement["Condition"].items()}
    assert conditions == {
        "StringEquals": {"aws:SourceAccount": "${AWS::AccountId}"},
        "ArnLike": {"aws:SourceArn": "arn:aws:sagemaker:us-west-2:${AWS::AccountId}:*"},
    }


@pytest.mark.parametrize(
    ("action", "folders"),
    [
        ("s3:GetObject", {"source", "checkpoints", "neuron-compile-cache"}),
        ("s3:PutObject", {"checkpoints", "output", "neuron-compile-cache"}),
        ("s3:DeleteObject", {"checkpoints", "neuron-compile-cache/direct"}),
    ],
)
def test_job_accesses_objects_only_under_its_prefixes(action: str, folders: set[str]) -> None:
    resources = resources_for(action, training_template())
    assert {resource.split("/", 1)[1] for resource in resources} == {f"{folder}/*" for folder in folders}


def test_job_lists_only_its_prefixes() -> None:
    listing = [s for s in policy_of(training_template(), JOB_ROLE) if "s3:ListBucket" in as_list(s["Action"])]
    prefixes = {prefix for s in listing for prefix in s["Condition"]["StringLike"]["s3:prefix"]}
    assert {prefix.removesuffix("/*") for prefix in prefixes} == {"source", "checkpoints", "neuron-compile-cache"}


def test_job_with_custom_image_may_pull_only_from_its_repository() -> None:
    own_image = "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/training:1.0"
    template = training_template(sagemaker_image=own_image)
    (repository,) = resources_for("ecr:BatchGetImage", template)
    assert repository == "arn:aws:ecr:us-west-2:123456789012:repository/team/training"
    assert template.json["Outputs"]["ImageUri"]["Value"] == own_image


def test_interfaces_are_created_only_in_subnet_and_group() -> None:
    template = training_template(sagemaker_vpc=True)
    kinds = [resource.split(":")[-1] for resource in resources_for("ec2:CreateNetworkInterface", template)]
    subnet, group = template.logical_id("AWS::EC2::Subnet"), template.logical_id("AWS::EC2::SecurityGroup")
    assert sorted(kinds) == sorted(
        ["network-interface/*", f"subnet/${{{subnet}}}", f"security-group/${{{group}.GroupId}}"]
    )


@pytest.mark.parametrize(
    "action",
    ["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission"],
)
def test_actions_on_interfaces_are_limited_to_the_subnet(action: str) -> None:
    template = training_template(sagemaker_vpc=True)
    (statement,) = [s for s in policy_of(template, JOB_ROLE) if action in as_list(s["Action"])]
    subnet = as_text(statement["Condition"]["ArnEquals"]["ec2:Subnet"])
    assert subnet.endswith(f":subnet/${{{template.logical_id('AWS::EC2::Subnet')}}}")


def test_group_of_jobs_in_vpc_allows_only_traffic_within_it_and_https() -> None:
    template = training_template(sagemaker_vpc=True)
    for direction, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        rule = template.properties(f"AWS::EC2::SecurityGroup{direction}")
        assert (rule["IpProtocol"], rule["GroupId"]) == ("-1", rule[other])
    (https,) = template.properties("AWS::EC2::SecurityGroup")["SecurityGroupEgress"]
    assert (https["FromPort"], https["ToPort"]) == (443, 443)


def test_existing_network_gets_only_endpoint_and_security_group() -> None:
    template = training_template(sagemaker_vpc=True, **EXISTING_NETWORK)
    made = {r["Type"] for r in template.resources().values() if r["Type"].startswith("AWS::EC2::")}
    assert made == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::VPCEndpoint",
    }


def test_existing_key_encrypts_store_and_is_used_only_through_s3() -> None:
    template = training_template(sagemaker_kms_key=KMS_KEY)
    (rule,) = template.resources()[store(template)]["Properties"]["BucketEncryption"][
        "ServerSideEncryptionConfiguration"
    ]
    assert rule["ServerSideEncryptionByDefault"] == {"KMSMasterKeyID": KMS_KEY, "SSEAlgorithm": "aws:kms"}
    (statement,) = [s for s in policy_of(template, JOB_ROLE) if "kms:Decrypt" in as_list(s["Action"])]
    assert statement["Resource"] == KMS_KEY
    through = {key: as_text(value) for key, value in statement["Condition"]["StringEquals"].items()}
    assert through == {"kms:ViaService": "s3.us-west-2.${AWS::URLSuffix}"}
    assert template.json["Outputs"]["KmsKeyArn"]["Value"] == KMS_KEY


@pytest.mark.parametrize(
    ("url", "objects"),
    [("s3://corpus/wiki/en/", "corpus/wiki/en/*"), ("s3://corpus", "corpus/*"), ("s3://corpus/", "corpus/*")],
)
def test_existing_data_is_readable_and_not_writable(url: str, objects: str) -> None:
    template = training_template(sagemaker_data=url)
    assert [r for r in resources_for("s3:GetObject", template) if r.endswith(objects)]
    assert not [r for r in resources_for("s3:PutObject", template) if "corpus" in r]


QUEUE = "arn:aws:batch:us-west-2:123456789012:job-queue/queue"


@pytest.mark.parametrize(
    ("queue", "status", "matching"),
    [
        (QUEUE, "FAILED", "JobFailed"),
        (QUEUE, "SUCCEEDED", "JobSucceeded"),
        (QUEUE, "RUNNABLE", ""),
        (f"{QUEUE}2", "FAILED", ""),
    ],
)
def test_one_rule_matches_the_end_of_a_job_of_the_queue(queue: str, status: str, matching: str) -> None:
    event = {
        "source": "aws.batch",
        "detail-type": "Batch Service Job State Change",
        "detail": {"jobQueue": queue, "status": status},
    }
    matches = [
        name
        for name, rule in training_template().resources("AWS::Events::Rule").items()
        if EventPattern.load(
            re.sub(r'{"Fn::GetAtt": [^}]*}', f'"{QUEUE}"', json.dumps(rule["Properties"]["EventPattern"]))
        ).matches_event(event)
    ]
    assert [name for name in matches if matching and matching in name] == matches
    assert len(matches) == bool(matching)


def test_rules_may_send_detail_of_batch_event_to_topic() -> None:
    template = training_template()
    topic, rules = template.logical_id("AWS::SNS::Topic"), template.resources("AWS::Events::Rule")
    for rule in rules.values():
        assert rule["Properties"]["Targets"] == [{"Arn": {"Ref": topic}, "Id": "Topic", "InputPath": "$.detail"}]
    (allowed,) = [
        statement
        for statement in template.properties("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert allowed["Principal"] == {"Service": "events.amazonaws.com"}
    assert allowed["Condition"]["ArnEquals"] == {"aws:SourceArn": [{"Fn::GetAtt": [rule, "Arn"]} for rule in rules]}


def test_alarm_counts_failed_jobs() -> None:
    template = training_template()
    (dimension,) = template.properties("AWS::CloudWatch::Alarm")["Dimensions"]
    assert "JobFailed" in dimension["Value"]["Ref"]


@pytest.mark.parametrize(("settings", "most"), [({}, 2), ({"sagemaker_max_instances": 6}, 6)])
def test_queue_runs_one_job_at_a_time_unless_the_plan_allows_more(settings: dict[str, Any], most: int) -> None:
    limits = training_template(**settings).properties("AWS::Batch::ServiceEnvironment")["CapacityLimits"]
    assert limits == [{"CapacityUnit": "NUM_INSTANCES", "MaxCapacity": most}]


def test_queue_is_found_by_the_tag_of_its_cluster() -> None:
    template = training_template()
    queue = template.properties("AWS::Batch::JobQueue")
    assert queue["Tags"] == {"trn:cluster": "trn-pilot"}
    policy = template.logical_id("AWS::Batch::SchedulingPolicy")
    assert queue["SchedulingPolicyArn"] == {"Fn::GetAtt": [policy, "Arn"]}


def test_job_may_write_only_log_streams_of_training_jobs_of_the_cluster() -> None:
    (streams,) = resources_for("logs:PutLogEvents", training_template())
    assert streams.endswith(f":log-stream:{training_job_prefix('trn-pilot')}*")


def test_region_without_sagemaker_image_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from trainium_core.jobs import images

    known = {"accounts": {"us-east-1": "763104351884"}, "repository": "r", "tags": ["t"]}
    monkeypatch.setattr(images, "_images", lambda: known)
    with pytest.raises(PlanError, match="a region with AWS's training images: us-east-1"):
        PlannedTraining(new_stack(), "Training", plan=a_plan())
