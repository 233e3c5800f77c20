"""Quota calls and their results: botocore's Stubber validates both against AWS's models."""

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from moto import mock_aws

from tests.core.aws_stubs import REGION, stubbed
from tests.core.fake_quotas import METRIC, ON_DEMAND
from trainium_core.aws.quota_requests import AlreadyRequestedError, AwsQuotaRequests
from trainium_runtime.aws_quotas import AwsQuotas
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.quota import Quota, QuotaRequest, RunningInstance

pytestmark = pytest.mark.usefixtures("made_up_credentials")

REQUEST = {"ServiceCode": "ec2", "QuotaCode": ON_DEMAND}
SHOWN: dict[str, Any] = {"QuotaCode": ON_DEMAND, "QuotaName": "Running On-Demand Trn instances", "Value": 384.0}
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HISTORY = "list_requested_service_quota_change_history_by_quota"


def test_applied_quota_is_the_limit() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_response("get_service_quota", {"Quota": SHOWN}, REQUEST)
    assert account.quotas.quota("ec2", ON_DEMAND) == Quota(code=ON_DEMAND, name=SHOWN["QuotaName"], limit=384)


def test_default_quota_counts_without_an_applied_one() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_client_error("get_service_quota", "NoSuchResourceException")
    stub.add_response("get_aws_default_service_quota", {"Quota": {**SHOWN, "Value": 0.0}}, REQUEST)
    quota = account.quotas.quota("ec2", ON_DEMAND)
    assert quota is not None
    assert (quota.limit, quota.is_default) == (0, True)


def test_missing_quota_is_none() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_client_error("get_service_quota", "NoSuchResourceException")
    stub.add_client_error("get_aws_default_service_quota", "NoSuchResourceException")
    assert account.quotas.quota("ec2", ON_DEMAND) is None


def test_quota_without_a_value_is_unknown() -> None:
    account, stub = stubbed("service-quotas")
    reason = {"ErrorCode": "DEPENDENCY_THROTTLING_ERROR", "ErrorMessage": "EC2 is busy"}
    stub.add_response("get_service_quota", {"Quota": {"QuotaCode": ON_DEMAND, "QuotaName": "x", "ErrorReason": reason}})
    with pytest.raises(UnavailableError, match=f"has no value for {ON_DEMAND}: DEPENDENCY_THROTTLING_ERROR: EC2"):
        account.quotas.quota("ec2", ON_DEMAND)


def test_quota_is_found_by_its_name_on_a_later_page() -> None:
    account, stub = stubbed("service-quotas")
    other, request = {**SHOWN, "QuotaName": "other", "QuotaCode": "L-00000000"}, {"ServiceCode": "sagemaker"}
    stub.add_response("list_service_quotas", {"Quotas": [other], "NextToken": "2"}, request)
    stub.add_response("list_service_quotas", {"Quotas": [SHOWN]}, request | {"NextToken": "2"})
    found = account.quotas.quota_named("sagemaker", "running on-demand trn instances")
    assert found is not None
    assert (found.code, found.is_default) == (ON_DEMAND, False)


def test_requests_of_all_pages_come_newest_first() -> None:
    def entry(name: str, day: int, status: str, **more: str) -> dict[str, Any]:
        created = datetime(2026, 11, day, tzinfo=UTC)
        return {"Id": name, "DesiredValue": 256.0, "Status": status, "Created": created, **more}

    account, stub = stubbed("service-quotas")
    pages = [entry("old", 1, "DENIED")], [entry("new", 2, "CASE_OPENED", CaseId="7"), entry("last", 3, "PENDING")]
    stub.add_response(HISTORY, {"RequestedQuotas": pages[0], "NextToken": "2"}, REQUEST)
    stub.add_response(HISTORY, {"RequestedQuotas": pages[1]}, REQUEST | {"NextToken": "2"})
    shown = [(each.request_id, each.case_id, each.is_open) for each in account.quotas.quota_requests("ec2", ON_DEMAND)]
    assert shown == [("last", None, True), ("new", "7", True), ("old", None, False)]


def test_metered_usage_is_the_latest_data_point() -> None:
    account, stub = stubbed("cloudwatch")
    points = [{"Timestamp": NOON - timedelta(minutes=m), "Maximum": float(m), "Unit": "None"} for m in (10, 5, 15)]
    parameters = {
        "Namespace": "AWS/Usage",
        "MetricName": "ResourceCount",
        "Dimensions": [{"Name": name, "Value": value} for name, value in METRIC.dimensions.items()],
        "StartTime": ANY,
        "EndTime": ANY,
        "Period": 300,
        "Statistics": ["Maximum"],
    }
    stub.add_response("get_metric_statistics", {"Datapoints": points}, parameters)
    assert account.quotas.metered_use(METRIC) == 5


def reservation(**changes: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": "cr-1",
        "OwnerId": "123456789012",
        "InstanceType": "trn1.32xlarge",
        "ReservationType": "default",
        "AvailableInstanceCount": 2,
        "TotalInstanceCount": 4,
        **changes,
    }


@pytest.mark.parametrize(
    ("second", "vcpus"),
    [
        ({"AvailableInstanceCount": 1}, 384),
        ({"OwnerId": "999999999999"}, 256),
        ({"ReservationType": "capacity-block"}, 256),
    ],
)
def test_unused_reservations_count_with_their_free_instances(second: dict[str, Any], vcpus: int) -> None:
    account, ec2 = stubbed("ec2")
    pages = [{"CapacityReservations": [entry]} for entry in (reservation(), reservation(**second))]
    parameters = {"Filters": [{"Name": "state", "Values": ["active"]}]}
    ec2.add_response("describe_capacity_reservations", {**pages[0], "NextToken": "2"}, parameters)
    ec2.add_response("describe_capacity_reservations", pages[1])
    types = [{"InstanceType": "trn1.32xlarge", "VCpuInfo": {"DefaultVCpus": 128}}]
    ec2.add_response("describe_instance_types", {"InstanceTypes": types})
    with Stubber(account.client("sts")) as sts:
        for _ in pages:
            sts.add_response("get_caller_identity", {"Account": "123456789012"})
        assert account.quotas.unused_reserved_vcpus("trn") == vcpus


def test_instances_are_those_of_the_family_by_market_and_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        ec2: Any = boto3.client("ec2", REGION)
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "trn:cluster", "Value": "mine"}]}]
        launch = {"ImageId": "ami-0123456789abcdef0", "MinCount": 1, "MaxCount": 1}
        ec2.run_instances(InstanceType="trn1.32xlarge", TagSpecifications=tags, **launch)
        ec2.run_instances(InstanceType="trn1.2xlarge", InstanceMarketOptions={"MarketType": "spot"}, **launch)
        ec2.run_instances(InstanceType="t3.micro", **launch)
        gone = ec2.run_instances(InstanceType="trn2.48xlarge", **launch)["Instances"][0]["InstanceId"]
        ec2.terminate_instances(InstanceIds=[gone])
        account = AwsQuotas(REGION)
        assert account.running_instances("trn") == [
            RunningInstance(vcpus=128, capacity="on-demand", cluster="mine"),
            RunningInstance(vcpus=8, capacity="spot", cluster=None),
        ]
        assert account.ended_instances("trn") == [RunningInstance(vcpus=192, capacity="on-demand")]


def test_usage_is_unknown_if_types_may_not_be_described() -> None:
    account, stub = stubbed("ec2")
    instance = {"InstanceId": "i-1", "InstanceType": "trn1.2xlarge"}
    stub.add_response("describe_instances", {"Reservations": [{"Instances": [instance]}]})
    stub.add_client_error("describe_instance_types", "UnauthorizedOperation", "no")
    with pytest.raises(UnavailableError, match="the permission ec2:DescribeInstanceTypes is missing"):
        account.quotas.running_instances("trn")


# Requests for an increase.


@pytest.fixture
def requests() -> AwsQuotaRequests:
    return AwsQuotaRequests(REGION)


def test_increase_request_has_exactly_the_value(requests: AwsQuotaRequests) -> None:
    shown = {"Id": "r-1", "DesiredValue": 384.0, "Status": "PENDING", "Created": NOON}
    with Stubber(requests.client("service-quotas")) as stub:
        stub.add_response("request_service_quota_increase", {"RequestedQuota": shown}, REQUEST | {"DesiredValue": 384})
        requested = requests.request_increase("ec2", ON_DEMAND, desired=384)
    assert requested == QuotaRequest(request_id="r-1", desired=384, status="PENDING", created=NOON)


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        ("ResourceAlreadyExistsException", AlreadyRequestedError, "too many"),
        ("AccessDeniedException", RequestRefusedError, "servicequotas:RequestServiceQuotaIncrease is missing"),
        ("DependencyAccessDeniedException", RequestRefusedError, "iam:CreateServiceLinkedRole"),
        ("QuotaExceededException", RequestRefusedError, "AWS answered QuotaExceededException: too many"),
    ],
)
def test_refused_request_names_the_reason(
    requests: AwsQuotaRequests, code: str, error: type[Exception], says: str
) -> None:
    with Stubber(requests.client("service-quotas")) as stub:
        stub.add_client_error("request_service_quota_increase", code, "too many")
        with pytest.raises(error, match=says):
            requests.request_increase("ec2", ON_DEMAND, desired=384)
