"""The questions that go to AWS: against moto where it answers truly, against botocore's Stubber where it does not."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber
from moto import mock_aws

from trainium_core.account import CannotTellError, RunningInstance
from trainium_core.adapters.aws_account import AwsAccount

REGION = "us-west-2"
CODE = "L-2C3B7624"


@pytest.fixture(autouse=True)
def _credentials_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def account() -> Iterator[AwsAccount]:
    """One account for all tests: moto takes a second to fill a new one with images."""
    with mock_aws():
        yield AwsAccount(REGION)


def client(service: str) -> Any:
    return boto3.client(service, REGION)


def stubbed(service: str) -> tuple[AwsAccount, Stubber]:
    """An account whose answers about one service a test writes."""
    account = AwsAccount(REGION)
    stub = Stubber(account.client(service))
    stub.activate()
    return account, stub


def an_image() -> Any:
    return client("ec2").describe_images(Owners=["amazon"])["Images"][0]


def test_identity_is_the_account_of_the_credentials(account: AwsAccount) -> None:
    identity = account.identity()
    assert (identity.account, identity.endpoint) == ("123456789012", None)


def test_an_answer_from_elsewhere_says_from_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4599")
    account, stub = stubbed("sts")
    stub.add_response("get_caller_identity", {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:root"})
    assert account.identity().endpoint == "http://127.0.0.1:4599"


def test_running_instances_are_those_of_the_family_with_their_market_and_cluster(account: AwsAccount) -> None:
    image, ec2 = an_image()["ImageId"], client("ec2")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "trn:cluster", "Value": "mine"}]}]
    launch = {"ImageId": image, "MinCount": 1, "MaxCount": 1}
    ec2.run_instances(InstanceType="trn1.32xlarge", TagSpecifications=tags, **launch)
    ec2.run_instances(InstanceType="trn1.2xlarge", InstanceMarketOptions={"MarketType": "spot"}, **launch)
    ec2.run_instances(InstanceType="t3.micro", **launch)
    gone = ec2.run_instances(InstanceType="trn2.48xlarge", **launch)["Instances"][0]["InstanceId"]
    ec2.terminate_instances(InstanceIds=[gone])
    assert account.running_instances("trn") == [
        RunningInstance(vcpus=128, capacity="on-demand", cluster="mine"),
        RunningInstance(vcpus=8, capacity="spot", cluster=None),
    ]


def test_an_account_that_runs_nothing_needs_no_type_to_be_described() -> None:
    account, stub = stubbed("ec2")
    stub.add_response("describe_instances", {"Reservations": []})
    assert account.running_instances("trn") == []


def test_zones_offering_a_type_are_told_by_id(account: AwsAccount) -> None:
    assert account.zones_offering("trn1.32xlarge") == {"usw2-az1", "usw2-az4"}
    assert account.zones_offering("trn2u.48xlarge") == set()


def test_the_zone_of_a_subnet_of_the_vpc_is_told_by_id(account: AwsAccount) -> None:
    subnet = client("ec2").describe_subnets()["Subnets"][0]
    found = account.subnet_zone(subnet_id=subnet["SubnetId"], vpc_id=subnet["VpcId"])
    assert found == subnet["AvailabilityZoneId"]
    assert found is not None
    assert found.startswith("usw2-az")


def test_a_subnet_of_another_vpc_is_not_found(account: AwsAccount) -> None:
    subnet = client("ec2").describe_subnets()["Subnets"][0]
    assert account.subnet_zone(subnet_id=subnet["SubnetId"], vpc_id="vpc-0123456789abcdef0") is None


def test_a_parameter_is_its_value_or_none(account: AwsAccount) -> None:
    client("ssm").put_parameter(Name="/my/image", Value="ami-0123456789abcdef0", Type="String")
    assert account.parameter("/my/image") == "ami-0123456789abcdef0"
    assert account.parameter("/my/other") is None


def test_a_region_without_the_namespace_has_no_parameter() -> None:
    account, stub = stubbed("ssm")
    message = "/aws/service/neuron is not a valid namespace"
    stub.add_client_error("get_parameter", "ValidationException", message)
    assert account.parameter("/aws/service/neuron/x") is None


def test_an_image_has_its_root_device_and_size(account: AwsAccount) -> None:
    described = an_image()
    image = account.image(described["ImageId"])
    assert image is not None
    assert (image.state, image.root_device_name) == ("available", described["RootDeviceName"])
    assert image.root_volume_gib == described["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"]


def test_an_image_that_is_not_there_is_none(account: AwsAccount) -> None:
    assert account.image("ami-0123456789abcdef0") is None


def test_an_image_that_is_hidden_is_none() -> None:
    account, stub = stubbed("ec2")
    stub.add_response("describe_images", {"Images": []})
    assert account.image("ami-0123456789abcdef0") is None


def test_a_stack_is_its_status_or_none(account: AwsAccount) -> None:
    template = '{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}'
    client("cloudformation").create_stack(StackName="CDKToolkit", TemplateBody=template)
    assert account.stack_status("CDKToolkit") == "CREATE_COMPLETE"
    assert account.stack_status("TrnClusterStack") is None


def test_the_applied_quota_counts() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_response("get_service_quota", {"Quota": {"Value": 384.0}}, {"ServiceCode": "ec2", "QuotaCode": CODE})
    assert account.quota_limit(CODE) == 384


def test_without_an_applied_quota_the_default_counts() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_client_error("get_service_quota", "NoSuchResourceException")
    asked = {"ServiceCode": "ec2", "QuotaCode": CODE}
    stub.add_response("get_aws_default_service_quota", {"Quota": {"Value": 0.0}}, asked)
    assert account.quota_limit(CODE) == 0


def test_a_default_that_may_not_be_read_names_its_own_permission() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_client_error("get_service_quota", "NoSuchResourceException")
    stub.add_client_error("get_aws_default_service_quota", "AccessDeniedException")
    with pytest.raises(CannotTellError, match="permission servicequotas:GetAWSDefaultServiceQuota is missing"):
        account.quota_limit(CODE)


@pytest.mark.parametrize(
    ("service", "operation", "code", "ask", "permission"),
    [
        ("sts", "get_caller_identity", "AccessDenied", lambda a: a.identity(), "sts:GetCallerIdentity"),
        (
            "service-quotas",
            "get_service_quota",
            "AccessDeniedException",
            lambda a: a.quota_limit(CODE),
            "servicequotas:GetServiceQuota",
        ),
        (
            "ec2",
            "describe_instances",
            "UnauthorizedOperation",
            lambda a: a.running_instances("trn"),
            "ec2:DescribeInstances",
        ),
        (
            "ec2",
            "describe_instance_type_offerings",
            "UnauthorizedOperation",
            lambda a: a.zones_offering("trn1.2xlarge"),
            "ec2:DescribeInstanceTypeOfferings",
        ),
        (
            "ec2",
            "describe_subnets",
            "UnauthorizedOperation",
            lambda a: a.subnet_zone(subnet_id="subnet-1", vpc_id="vpc-1"),
            "ec2:DescribeSubnets",
        ),
        ("ec2", "describe_images", "UnauthorizedOperation", lambda a: a.image("ami-1"), "ec2:DescribeImages"),
        ("ssm", "get_parameter", "AccessDeniedException", lambda a: a.parameter("/x"), "ssm:GetParameter"),
        (
            "cloudformation",
            "describe_stacks",
            "AccessDenied",
            lambda a: a.stack_status("x"),
            "cloudformation:DescribeStacks",
        ),
    ],
)
def test_what_may_not_be_looked_at_names_the_missing_permission(
    service: str, operation: str, code: str, ask: Any, permission: str
) -> None:
    account, stub = stubbed(service)
    stub.add_client_error(operation, code, "no")
    with pytest.raises(CannotTellError, match=f"the permission {permission} is missing"):
        ask(account)


def test_types_that_may_not_be_described_leave_the_use_unknown() -> None:
    account, stub = stubbed("ec2")
    instance = {"InstanceId": "i-1", "InstanceType": "trn1.2xlarge"}
    stub.add_response("describe_instances", {"Reservations": [{"Instances": [instance]}]})
    stub.add_client_error("describe_instance_types", "UnauthorizedOperation", "no")
    with pytest.raises(CannotTellError, match="the permission ec2:DescribeInstanceTypes is missing"):
        account.running_instances("trn")


def test_any_other_refusal_is_told_in_the_words_of_aws() -> None:
    account, stub = stubbed("sts")
    stub.add_client_error("get_caller_identity", "ExpiredToken", "The security token is expired")
    with pytest.raises(CannotTellError, match="AWS answered ExpiredToken: The security token is expired"):
        account.identity()


def test_missing_credentials_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(CannotTellError, match="credentials"):
        AwsAccount(REGION).identity()


def test_an_unknown_profile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "none-such")
    with pytest.raises(CannotTellError, match="none-such"):
        AwsAccount(REGION).identity()


def test_an_endpoint_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    account = AwsAccount(REGION)

    def unreachable(*_: Any, **__: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://sts.us-west-2.amazonaws.com")

    monkeypatch.setattr(account.client("sts"), "_make_api_call", unreachable)
    with pytest.raises(CannotTellError, match="Could not connect"):
        account.identity()


def test_no_question_takes_long() -> None:
    config = AwsAccount(REGION).client("sts").meta.config
    assert config.connect_timeout <= 5
    assert config.read_timeout <= 10
    assert config.retries["total_max_attempts"] <= 3
