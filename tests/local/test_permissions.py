"""`--iam enforced`: policies decide what a role, a user, a function and CloudFormation may do."""

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.deploy.clock import MovableClock
from tests.local.code_entry import readable
from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template
from trainium_local.server import Settings

ACCOUNT = "123456789012"
Statement = dict[str, Any]


@pytest.fixture(scope="module")
def aws(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> EmbeddedAws:
    return start_embedded_aws(Settings(iam="enforced"))


def allow(actions: str | list[str], resources: str | list[str] = "*", **more: Any) -> Statement:
    return {"Effect": "Allow", "Action": actions, "Resource": resources, **more}


def deny(actions: str, resources: str = "*", **more: Any) -> Statement:
    return allow(actions, resources, **more) | {"Effect": "Deny"}


def policy(*statements: Statement) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def trust(principal: dict[str, str], **more: Any) -> str:
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


OF_THE_ACCOUNT = trust({"AWS": f"arn:aws:iam::{ACCOUNT}:root"})


def role(aws: EmbeddedAws, *statements: Statement, trusts: str = OF_THE_ACCOUNT, **more: Any) -> str:
    """The ARN of a new role with the statements in an inline policy."""
    name = f"r-{uuid.uuid4().hex[:8]}"
    iam = aws.client("iam")
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trusts, **more)["Role"]["Arn"]
    if statements:
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(*statements))
    return arn


class Session:
    """Clients with the credentials of a role."""

    def __init__(self, aws: EmbeddedAws, role_arn: str, **more: Any) -> None:
        sts = more.pop("sts", None) or aws.client("sts")
        keys = sts.assume_role(RoleArn=role_arn, RoleSessionName="me", **more)["Credentials"]
        self._session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        self._place = {"region_name": aws.region, "endpoint_url": aws.endpoint}

    def client(self, service: str) -> Any:
        return self._session.client(service, **self._place)


def refusal(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def bucket(aws: EmbeddedAws) -> str:
    name = f"b-{uuid.uuid4().hex[:8]}"
    aws.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": aws.region})
    return name


def test_operations_of_aws_batch_are_permitted_by_action(aws: EmbeddedAws) -> None:
    batch = Session(aws, role(aws, allow("batch:DescribeJobQueues"))).client("batch")
    assert batch.describe_job_queues()["jobQueues"] == []
    assert "perform: batch:TerminateServiceJob" in refusal(batch.terminate_service_job, jobId="x", reason="r")[1]


def test_action_without_policy_is_refused_with_message_of_service(aws: EmbeddedAws) -> None:
    arn, name = role(aws), bucket(aws)
    session = Session(aws, arn)
    user = f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{arn.rpartition('/')[2]}/me is not authorized to perform: "
    reason = "because no identity-based policy allows the {} action"
    assert refusal(session.client("iam").get_role, RoleName="x") == (
        "AccessDenied",
        f"{user}iam:GetRole on resource: arn:aws:iam::{ACCOUNT}:role/x {reason.format('iam:GetRole')}",
    )
    assert refusal(session.client("ssm").get_parameter, Name="/a/b") == (
        "AccessDeniedException",
        f"{user}ssm:GetParameter on resource: arn:aws:ssm:us-west-2:{ACCOUNT}:parameter/a/b "
        f"{reason.format('ssm:GetParameter')}",
    )
    assert refusal(session.client("s3").put_object, Bucket=name, Key="k/x", Body=b"") == (
        "AccessDenied",
        f'{user}s3:PutObject on resource: "arn:aws:s3:::{name}/k/x" {reason.format("s3:PutObject")}',
    )
    assert refusal(session.client("ec2").describe_vpcs) == (
        "UnauthorizedOperation",
        f"You are not authorized to perform this operation. {user}ec2:DescribeVpcs on resource: * "
        f"{reason.format('ec2:DescribeVpcs')}",
    )
    assert refusal(session.client("lambda").list_functions)[0] == "AccessDeniedException"
    assert refusal(session.client("s3").list_objects_v2, Bucket=name)[1].count("s3:ListBucket") == 2


def test_deny_overrides_allow(aws: EmbeddedAws) -> None:
    session = Session(aws, role(aws, allow("*"), deny("ssm:Put*")))
    code, message = refusal(session.client("ssm").put_parameter, Name="x", Value="x", Type="String")
    assert code == "AccessDeniedException"
    assert message.endswith("with an explicit deny in an identity-based policy")
    session.client("ssm").describe_parameters()


def test_bucket_policy_grants_role_what_its_policy_does_not_deny(aws: EmbeddedAws) -> None:
    name = bucket(aws)
    let_in, denied, other = role(aws), role(aws, deny("s3:PutObject")), role(aws)
    lets_in = allow("s3:PutObject", f"arn:aws:s3:::{name}/*", Principal={"AWS": [let_in, denied]})
    aws.client("s3").put_bucket_policy(Bucket=name, Policy=policy(lets_in))
    Session(aws, let_in).client("s3").put_object(Bucket=name, Key="k", Body=b"")
    for arn in (denied, other):
        assert refusal(Session(aws, arn).client("s3").put_object, Bucket=name, Key="k", Body=b"")[0] == "AccessDenied"


def test_resource_is_matched_with_wildcards(aws: EmbeddedAws) -> None:
    Session(aws, role(aws, allow("ec2:DescribeVpcs"))).client("ec2").describe_vpcs()
    # DescribeVpcs has no resource types.
    narrow = Session(aws, role(aws, allow("ec2:DescribeVpcs", f"arn:aws:ec2:*:{ACCOUNT}:vpc/*")))
    assert refusal(narrow.client("ec2").describe_vpcs)[0] == "UnauthorizedOperation"
    name = bucket(aws)
    s3 = Session(aws, role(aws, allow("s3:*Object", f"arn:aws:s3:::{name}/logs/*"))).client("s3")
    s3.put_object(Bucket=name, Key="logs/a/b", Body=b"")
    assert refusal(s3.put_object, Bucket=name, Key="other", Body=b"")[0] == "AccessDenied"
    assert refusal(s3.delete_objects, Bucket=name, Delete={"Objects": [{"Key": "logs/a/b"}, {"Key": "other"}]})


def test_unnamed_resource_may_be_any_of_its_type(aws: EmbeddedAws) -> None:
    groups = f"arn:aws:autoscaling:us-west-2:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName"
    session = Session(aws, role(aws, allow("autoscaling:SetInstanceHealth", f"{groups}/mine")))
    mark = session.client("autoscaling").set_instance_health
    assert refusal(mark, InstanceId="i-1", HealthStatus="Unhealthy")[0] == "ValidationError"
    other = Session(aws, role(aws, allow("autoscaling:*", f"arn:aws:autoscaling:*:{ACCOUNT}:launchConfiguration:*")))
    assert refusal(other.client("autoscaling").set_instance_health, InstanceId="i-1", HealthStatus="Unhealthy")[0] == (
        "AccessDenied"
    )


def test_tags_of_parameter_require_permission_for_the_parameter(aws: EmbeddedAws) -> None:
    client = Session(aws, role(aws, allow("ssm:*", f"arn:aws:ssm:*:{ACCOUNT}:parameter/mine/*"))).client("ssm")
    client.put_parameter(Name="/mine/x", Value="x", Type="String")
    tags: Any = {"ResourceType": "Parameter", "Tags": [{"Key": "team", "Value": "ml"}]}
    client.add_tags_to_resource(ResourceId="/mine/x", **tags)
    message = refusal(client.add_tags_to_resource, ResourceId="/theirs/x", **tags)[1]
    assert f"resource: arn:aws:ssm:us-west-2:{ACCOUNT}:parameter/theirs/x " in message


def test_conditions_on_tags_are_evaluated(aws: EmbeddedAws) -> None:
    ec2 = aws.client("ec2")
    of_cluster = {"StringEquals": {"aws:ResourceTag/cluster": "a"}, "ForAllValues:StringEquals": {"aws:TagKeys": ["t"]}}
    session = Session(aws, role(aws, allow("ec2:CreateTags", "arn:aws:ec2:*:*:vpc/*", Condition=of_cluster)))
    own, other = (
        ec2.create_vpc(
            CidrBlock="10.9.0.0/16",
            TagSpecifications=[{"ResourceType": "vpc", "Tags": [{"Key": "cluster", "Value": value}]}],
        )["Vpc"]["VpcId"]
        for value in "ab"
    )
    tag = session.client("ec2").create_tags
    tag(Resources=[own], Tags=[{"Key": "t", "Value": "1"}])
    assert refusal(tag, Resources=[other], Tags=[{"Key": "t", "Value": "1"}])[0] == "UnauthorizedOperation"
    assert refusal(tag, Resources=[own], Tags=[{"Key": "u", "Value": "1"}])[0] == "UnauthorizedOperation"


def test_boundary_and_session_policy_only_restrict(aws: EmbeddedAws) -> None:
    only_ssm = aws.client("iam").create_policy(
        PolicyName=f"p-{uuid.uuid4().hex[:8]}", PolicyDocument=policy(allow("ssm:*"))
    )["Policy"]["Arn"]
    arn = role(aws, allow("*"), PermissionsBoundary=only_ssm)
    session = Session(aws, arn)
    session.client("ssm").describe_parameters()
    assert refusal(session.client("ec2").describe_vpcs)[1].endswith(
        "because no permissions boundary allows the ec2:DescribeVpcs action"
    )
    narrowed = Session(aws, arn, Policy=policy(allow("ssm:GetParameter")))
    assert refusal(narrowed.client("ssm").describe_parameters)[1].endswith(
        "because no session policy allows the ssm:DescribeParameters action"
    )


def test_user_has_policies_of_its_groups(aws: EmbeddedAws) -> None:
    iam, name = aws.client("iam"), f"u-{uuid.uuid4().hex[:8]}"
    iam.create_user(UserName=name)
    iam.create_group(GroupName=name)
    iam.add_user_to_group(GroupName=name, UserName=name)
    iam.put_group_policy(GroupName=name, PolicyName="p", PolicyDocument=policy(allow("ec2:DescribeVpcs")))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    ec2 = boto3.client(
        "ec2",
        region_name=aws.region,
        endpoint_url=aws.endpoint,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    ec2.describe_vpcs()
    assert f"User: arn:aws:iam::{ACCOUNT}:user/{name} is not" in refusal(ec2.describe_subnets)[1]


def test_role_is_assumed_only_by_trusted_principals(aws: EmbeddedAws) -> None:
    of_lambda = role(aws, trusts=trust({"Service": "lambda.amazonaws.com"}))
    code, message = refusal(aws.client("sts").assume_role, RoleArn=of_lambda, RoleSessionName="me")
    assert (code, message.endswith(f"sts:AssumeRole on resource: {of_lambda}")) == ("AccessDenied", True)
    with_id = role(aws, trusts=trust({"AWS": ACCOUNT}, Condition={"StringEquals": {"sts:ExternalId": "xy"}}))
    assert refusal(aws.client("sts").assume_role, RoleArn=with_id, RoleSessionName="me")[0] == "AccessDenied"
    Session(aws, with_id, ExternalId="xy")


def test_assume_role_needs_permission_only_if_account_is_trusted(
    aws: EmbeddedAws,
) -> None:
    arn = role(aws)
    sts = Session(aws, arn).client("sts")
    assert refusal(sts.assume_role, RoleArn=role(aws), RoleSessionName="me")[0] == "AccessDenied"
    Session(aws, role(aws, trusts=trust({"AWS": arn})), sts=sts)


def test_pass_role_requires_permission(aws: EmbeddedAws) -> None:
    passed = role(aws, trusts=trust({"Service": "scheduler.amazonaws.com"}))
    wanted = {
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": f"arn:aws:lambda:us-west-2:{ACCOUNT}:function:f", "RoleArn": passed},
    }
    without = Session(aws, role(aws, allow("scheduler:*"))).client("scheduler")
    assert refusal(without.create_schedule, Name="a", **wanted)[1].endswith(
        f"iam:PassRole on resource: {passed} because no identity-based policy allows the iam:PassRole action"
    )
    to_scheduler = {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    allowed = Session(aws, role(aws, allow("scheduler:*"), allow("iam:PassRole", passed, Condition=to_scheduler)))
    allowed.client("scheduler").create_schedule(Name="a", **wanted)
    to_lambda = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
    other = Session(aws, role(aws, allow("scheduler:*"), allow("iam:PassRole", passed, Condition=to_lambda)))
    assert "iam:PassRole" in refusal(other.client("scheduler").create_schedule, Name="b", **wanted)[1]


CLOUDFORMATION = trust({"Service": "cloudformation.amazonaws.com"})


def test_cloudformation_uses_permissions_of_its_role(aws: EmbeddedAws) -> None:
    stacks, wanted = Stacks(aws), template({"P": parameter()})
    arn = role(aws, allow("ssm:*Parameter*"), allow("ssm:*Tags*"), trusts=CLOUDFORMATION)
    assert stacks.delete(stacks.deploy(wanted, RoleARN=arn)) == "DELETE_COMPLETE"
    without = role(aws, allow("sns:*"), trusts=CLOUDFORMATION)
    name = stacks.create(wanted, RoleARN=without)
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    user = f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{without.rpartition('/')[2]}/AWSCloudFormation"
    assert f"{user} is not authorized to perform: ssm:PutParameter on resource: " in stacks.failures(name)
    untrusted = role(aws, allow("*"))
    assert refusal(stacks.create, wanted=wanted, RoleARN=untrusted) == (
        "ValidationError",
        f"Role {untrusted} is invalid or cannot be assumed",
    )


def test_unreadable_parameter_is_refused_with_the_permission(aws: EmbeddedAws) -> None:
    image = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    declared = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": image}
    wanted = {**template({"P": parameter()}), "Parameters": {"Image": declared}}
    code, message = refusal(Stacks(aws).create, wanted=wanted, RoleARN=role(aws, trusts=CLOUDFORMATION))
    assert code == "ValidationError"
    assert (
        f"is not authorized to perform: ssm:GetParameters on resource: arn:aws:ssm:us-west-2::parameter{image}"
        in message
    )


def test_type_without_adapter_requires_main_action_of_its_handler(aws: EmbeddedAws) -> None:
    stacks, queue = Stacks(aws), {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": 1}}
    wanted, changed = template({"Q": queue}), template({"Q": queue | {"Properties": {"DelaySeconds": 2}}})
    without = role(aws, allow("sqs:DeleteQueue"), trusts=CLOUDFORMATION)
    name = stacks.create(wanted, RoleARN=without)
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "is not authorized to perform: sqs:CreateQueue" in stacks.failures(name)
    creates = role(aws, allow("sqs:CreateQueue"), trusts=CLOUDFORMATION)
    name = stacks.deploy(wanted, RoleARN=creates)
    assert stacks.update(name, changed) == "UPDATE_ROLLBACK_FAILED"
    assert "is not authorized to perform: sqs:SetQueueAttributes" in stacks.failures(name)
    assert stacks.delete(name) == "DELETE_FAILED"
    assert "is not authorized to perform: sqs:DeleteQueue" in stacks.failures(name)


def test_cloudformation_without_role_uses_permissions_of_caller(aws: EmbeddedAws) -> None:
    api = Session(aws, role(aws, allow("cloudformation:*"))).client("cloudformation")
    name = f"t-{uuid.uuid4().hex[:8]}"
    api.create_stack(StackName=name, TemplateBody=json.dumps(template({"P": parameter()})))
    stacks = Stacks(aws)
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "ssm:PutParameter" in stacks.failures(name)


OF_LAMBDA = trust({"Service": "lambda.amazonaws.com"})
PUTS_A_PARAMETER = """
import boto3
def handler(event, context):
    boto3.client("ssm").put_parameter(Name=event["name"], Value="x", Type="String")
"""


def function(aws: EmbeddedAws, role_arn: str, code: str = PUTS_A_PARAMETER) -> dict[str, Any]:
    """A new function, from the response of CreateFunction."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(readable("index.py"), code)
    return aws.client("lambda").create_function(
        FunctionName=f"f-{uuid.uuid4().hex[:8]}",
        Runtime="python3.13",
        Handler="index.handler",
        Role=role_arn,
        Timeout=20,
        Code={"ZipFile": archive.getvalue()},
    )


def error_of(aws: EmbeddedAws, name: str, event: dict[str, str]) -> str | None:
    answer = aws.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event))
    return json.loads(answer["Payload"].read())["errorMessage"] if "FunctionError" in answer else None


def test_function_uses_permissions_of_its_role(aws: EmbeddedAws) -> None:
    arn = role(aws, allow("ssm:PutParameter", f"arn:aws:ssm:*:{ACCOUNT}:parameter/mine/*"), trusts=OF_LAMBDA)
    name = function(aws, arn)["FunctionName"]
    assert error_of(aws, name, {"name": "/mine/a"}) is None
    message = error_of(aws, name, {"name": "/other"}) or ""
    assert f"assumed-role/{arn.rpartition('/')[2]}/{name} is not authorized to perform: ssm:PutParameter" in message


def wait_until(true: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 480
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(true())


def test_rule_calls_only_functions_whose_policy_allows_it(aws: EmbeddedAws) -> None:
    events, arn = aws.client("events"), role(aws, trusts=OF_LAMBDA)
    permitted, other = (function(aws, arn, "def handler(event, context):\n    pass\n") for _ in range(2))
    source = f"own.{uuid.uuid4().hex[:8]}"
    rule = events.put_rule(Name=source, EventPattern=json.dumps({"source": [source]}))["RuleArn"]
    events.put_targets(
        Rule=source, Targets=[{"Id": one["FunctionName"], "Arn": one["FunctionArn"]} for one in (permitted, other)]
    )
    aws.client("lambda").add_permission(
        FunctionName=permitted["FunctionName"],
        StatementId="s",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=rule,
    )
    events.put_events(Entries=[{"Source": source, "DetailType": "d", "Detail": "{}"}])
    called = aws.client("logs").describe_log_groups
    assert wait_until(lambda: called(logGroupNamePrefix=f"/aws/lambda/{permitted['FunctionName']}")["logGroups"])
    refused = "events.amazonaws.com is not authorized to perform: lambda:InvokeFunction on resource: "
    assert wait_until(lambda: refused + other["FunctionArn"] in aws.log.read_text())
    assert called(logGroupNamePrefix=f"/aws/lambda/{other['FunctionName']}")["logGroups"] == []


def test_invocation_by_schedule_whose_role_lacks_permission_is_refused(aws: EmbeddedAws) -> None:
    name = function(aws, role(aws, trusts=OF_LAMBDA), "def handler(event, context):\n    pass\n")["FunctionName"]
    target = f"arn:aws:lambda:{aws.region}:{ACCOUNT}:function:{name}"
    scheduler = trust({"Service": "scheduler.amazonaws.com"})
    without = role(aws, allow("lambda:InvokeFunction", f"{target}-other"), trusts=scheduler)
    clock = MovableClock(connection=aws.connection)
    aws.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression=f"at({clock.now + timedelta(hours=1):%Y-%m-%dT%H:%M:%S})",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": target, "RoleArn": without},
    )
    clock.forward(minutes=1)  # Now the scheduler has seen the schedule.
    clock.forward(hours=1)
    refused = f"assumed-role/{without.rpartition('/')[2]}/{name} is not authorized to perform: lambda:InvokeFunction"
    assert wait_until(lambda: refused in aws.log.read_text())
