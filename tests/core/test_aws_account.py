"""Calls about an account: against moto where it answers as AWS does, otherwise against botocore's Stubber."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import SSLError
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from tests.core.aws_stubs import REGION, stubbed
from trainium_core.aws.account import AwsAccount
from trainium_core.stacks.deployed_stack import DeployedStack, StackContents, StackNetwork
from trainium_runtime.errors import DeniedError, OfflineError, UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")


@pytest.fixture(scope="module")
def account() -> Iterator[AwsAccount]:
    """One account for all tests: moto takes a second to fill a new one with images."""
    with mock_aws():
        # moto keeps a backend of an earlier test, which may have been set to load no images.
        ec2_backends[DEFAULT_ACCOUNT_ID][REGION].reset()
        yield AwsAccount(REGION)


def client(service: str) -> Any:
    return boto3.client(service, REGION)


def test_identity_names_an_endpoint_other_than_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4599")
    account, stub = stubbed("sts")
    stub.add_response("get_caller_identity", {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:root"})
    assert account.identity().endpoint == "http://127.0.0.1:4599"


def test_certificate_of_a_proxy_names_the_settings_that_trust_it() -> None:
    account = AwsAccount(REGION)
    why = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate"

    def refuse(**_: Any) -> None:
        raise SSLError(endpoint_url="https://sts.us-west-2.amazonaws.com/", error=why)

    account.client("sts").meta.events.register("before-send.sts", refuse)
    with pytest.raises(OfflineError) as failed:
        account.identity()
    assert "the TLS certificate of https://sts.us-west-2.amazonaws.com/ is not trusted" in failed.value.reason
    assert all(name in failed.value.remedy for name in ("AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"))


class Body:
    """The body of a response that botocore reads."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.content


def answered(service: str, call: Callable[[AwsAccount], object], body: str, headers: Mapping[str, str]) -> str:
    """The message of the error if a request gets this response with status 403."""
    account = AwsAccount(REGION)

    def answer(**_: Any) -> AWSResponse:
        return AWSResponse("https://example.com", 403, headers, Body(body.encode()))

    account.client(service).meta.events.register(f"before-send.{service}", answer)
    with pytest.raises(UnavailableError) as failed:
        call(account)
    return str(failed.value)


PAGE = "<html><body>Blocked</body></html>"
READS: Mapping[str, Callable[[AwsAccount], object]] = {
    "sts": lambda account: account.identity(),
    "ssm": lambda account: account.parameter("/my/image"),
    "s3": lambda account: account.storage.bucket_region("data"),
}


@pytest.mark.parametrize("service", READS)
@pytest.mark.parametrize("body", [PAGE, "<!DOCTYPE html><p>Blocked<br>", "Blocked", ""])
def test_refusal_of_a_proxy_is_not_called_a_missing_permission(service: str, body: str) -> None:
    message = answered(service, READS[service], body, {})
    assert "is missing" not in message
    assert "HTTPS_PROXY" in message


def test_refused_head_request_to_s3_names_what_can_be_the_reason() -> None:
    """The response to a HEAD request has no body, so the reason is unknown."""
    message = answered("s3", READS["s3"], "", {"x-amz-request-id": "4442587FB7D0A2F9"})
    assert message.startswith(
        "not allowed to read: the permission s3:ListBucket on the bucket data is missing, or a policy denies it (status"
    )


@pytest.mark.parametrize("policy", ["service control policy", "permissions boundary"])
def test_policy_that_denies_what_permissions_allow_is_named(policy: str) -> None:
    account, stub = stubbed("sts")
    why = f"User: arn:aws:iam::123456789012:user/ada is not authorized with an explicit deny in a {policy}"
    stub.add_client_error("get_caller_identity", "AccessDenied", why)
    with pytest.raises(DeniedError) as failed:
        account.identity()
    assert failed.value.reason == f"not allowed to read: a {policy} denies sts:GetCallerIdentity"
    assert "trn:quota_check=off" in failed.value.remedy


def test_missing_parameter_is_none(account: AwsAccount) -> None:
    client("ssm").put_parameter(Name="/my/image", Value="ami-0123456789abcdef0", Type="String")
    assert account.parameter("/my/image") == "ami-0123456789abcdef0"
    assert account.parameter("/my/other") is None


def test_deprecated_image_is_found_with_its_date() -> None:
    account, stub = stubbed("ec2")
    described = {
        "ImageId": "ami-1",
        "OwnerId": "210987654321",
        "Architecture": "x86_64",
        "State": "available",
        "DeprecationTime": "2026-01-26T00:00:00.000Z",
    }
    request = {"ImageIds": ["ami-1"], "IncludeDeprecated": True}
    stub.add_response("describe_images", {"Images": [described]}, request)
    image = account.images.image("ami-1")
    assert image is not None
    assert (image.deprecated, image.owner) == (datetime(2026, 1, 26, tzinfo=UTC), "210987654321")


def test_images_of_a_name_are_found_on_all_pages_newest_first() -> None:
    account, stub = stubbed("ec2")
    entry = {"OwnerId": "210987654321", "ImageOwnerAlias": "amazon", "Architecture": "x86_64", "State": "available"}
    days = {"ami-2": "2026-11-11", "ami-1": "2026-10-19", "ami-3": "2026-11-20"}
    images = [{**entry, "ImageId": image_id, "CreationDate": f"{day}T00:00:00.000Z"} for image_id, day in days.items()]
    wanted = {"name": "Deep *", "state": "available", "architecture": "x86_64"}
    filters = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
    request: dict[str, Any] = {"Owners": ["amazon"], "Filters": filters}
    stub.add_response("describe_images", {"Images": images[:2], "NextToken": "more"}, request)
    stub.add_response("describe_images", {"Images": images[2:]}, {**request, "NextToken": "more"})
    assert [image.image_id for image in account.images.available("amazon", "Deep *")] == ["ami-3", "ami-2", "ami-1"]


def contents(account: AwsAccount, name: str, template: Mapping[str, Any]) -> StackContents:
    """The contents of a new stack of the template."""
    client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))
    stack = account.stacks.deployed_stack(name)
    assert stack is not None
    return account.stacks.stack_contents(stack)


def test_stack_has_its_parameters() -> None:
    account, stub = stubbed("cloudformation")
    parameters = [
        {"ParameterKey": "Image", "ParameterValue": "/my/image", "ResolvedValue": "ami-1"},
        {"ParameterKey": "Asleep", "ParameterValue": "false"},
    ]
    entry = {
        "StackName": "A",
        "StackId": "arn:aws:cloudformation:us-west-2:123456789012:stack/A/1",
        "CreationTime": datetime(2026, 11, 21, tzinfo=UTC),
        "StackStatus": "CREATE_COMPLETE",
        "Parameters": parameters,
    }
    stub.add_response("describe_stacks", {"Stacks": [entry]}, {"StackName": "A"})
    stack = account.stacks.deployed_stack("A")
    assert stack is not None
    assert stack.parameters == {"Image": "/my/image", "Asleep": "false"}


def test_stack_belongs_to_cluster_of_resource_tags(account: AwsAccount) -> None:
    tags = {"Tags": [{"Key": "trn:cluster", "Value": "others"}]}
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": tags}}}
    assert contents(account, "TrnClusterStack", template).cluster == "others"


def test_stack_network_is_that_of_its_template(account: AwsAccount) -> None:
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.42.0.0/16"}}
    of_subnet = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.42.0.0/17", "AvailabilityZoneId": "usw2-az4"}
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": of_subnet}
    found = contents(account, "WithNetwork", {"Resources": {"Vpc": vpc, "Subnet": subnet}})
    assert found.network == StackNetwork(zone_id="usw2-az4", cidr="10.42.0.0/16")


def test_stack_file_system_is_found_by_template(monkeypatch: pytest.MonkeyPatch, account: AwsAccount) -> None:
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.42.0.0/16"}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"AvailabilityZoneId": "usw2-az4"}},
        "Lustre": {"Type": "AWS::FSx::FileSystem"},
    }
    monkeypatch.setattr(account.stacks, "template_resources", lambda *_: resources)
    stack = DeployedStack(stack_id="Lustre", status="CREATE_COMPLETE", created=datetime(2026, 11, 21, tzinfo=UTC))
    network = account.stacks.stack_contents(stack).network
    assert network is not None
    assert network.has_lustre


def test_missing_image_is_none(account: AwsAccount) -> None:
    assert account.images.image("ami-0123456789abcdef0") is None
