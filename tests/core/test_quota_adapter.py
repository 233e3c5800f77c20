"""What is asked about quotas, and what becomes of the answers: botocore's Stubber holds both against AWS's models."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from moto import mock_aws

from tests.core.fake_quotas import METRIC, ON_DEMAND
from trainium_runtime.aws_quotas import AwsQuotas
from trainium_runtime.errors import UnavailableError
from trainium_runtime.quota import Quota, RunningInstance

pytestmark = pytest.mark.usefixtures("credentials_of_nobody")

REGION = "us-west-2"
REQUEST = {"ServiceCode": "ec2", "QuotaCode": ON_DEMAND}
SHOWN: dict[str, Any] = {"QuotaCode": ON_DEMAND, "QuotaName": "Running On-Demand Trn instances", "Value": 384.0}
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)

Stub = Callable[[str], Stubber]


@pytest.fixture
def account() -> AwsQuotas:
    return AwsQuotas(REGION)


@pytest.fixture
def stub(account: AwsQuotas) -> Stub:
    """The stub of a service; a call that no test wrote fails."""
    stubs: dict[str, Stubber] = {}

    def of(service: str) -> Stubber:
        if service not in stubs:
            stubs[service] = Stubber(account.client(service))
            stubs[service].activate()
        return stubs[service]

    return of


def test_the_applied_quota_is_the_limit(account: AwsQuotas, stub: Stub) -> None:
    stub("service-quotas").add_response("get_service_quota", {"Quota": SHOWN}, REQUEST)
    assert account.quota("ec2", ON_DEMAND) == Quota(code=ON_DEMAND, name=SHOWN["QuotaName"], limit=384)


def test_without_an_applied_quota_the_default_counts_and_says_so(account: AwsQuotas, stub: Stub) -> None:
    stub("service-quotas").add_client_error("get_service_quota", "NoSuchResourceException")
    stub("service-quotas").add_response("get_aws_default_service_quota", {"Quota": {**SHOWN, "Value": 0.0}}, REQUEST)
    quota = account.quota("ec2", ON_DEMAND)
    assert quota is not None
    assert (quota.limit, quota.is_default) == (0, True)


def test_a_quota_without_a_value_cannot_be_reported(account: AwsQuotas, stub: Stub) -> None:
    reason = {"ErrorCode": "DEPENDENCY_THROTTLING_ERROR", "ErrorMessage": "EC2 is busy"}
    shown = {"QuotaCode": ON_DEMAND, "QuotaName": "x", "ErrorReason": reason}
    stub("service-quotas").add_response("get_service_quota", {"Quota": shown})
    with pytest.raises(
        UnavailableError, match=f"has no value for {ON_DEMAND}: DEPENDENCY_THROTTLING_ERROR: EC2 is busy"
    ):
        account.quota("ec2", ON_DEMAND)


def test_a_quota_is_found_by_its_name_on_a_later_page(account: AwsQuotas, stub: Stub) -> None:
    other = {**SHOWN, "QuotaName": "other", "QuotaCode": "L-00000000"}
    quotas = stub("service-quotas")
    quotas.add_response("list_service_quotas", {"Quotas": [other], "NextToken": "2"}, {"ServiceCode": "sagemaker"})
    quotas.add_response("list_service_quotas", {"Quotas": [SHOWN]}, {"ServiceCode": "sagemaker", "NextToken": "2"})
    found = account.quota_named("sagemaker", "running on-demand trn instances")
    assert found is not None
    assert (found.code, found.is_default) == (ON_DEMAND, False)


def test_requests_come_newest_first_over_all_pages(account: AwsQuotas, stub: Stub) -> None:
    def entry(name: str, day: int, **more: str) -> dict[str, Any]:
        created = datetime(2026, 11, day, tzinfo=UTC)
        return {"Id": name, "DesiredValue": 256.0, "Status": "PENDING", "Created": created, **more}

    history, operation = stub("service-quotas"), "list_requested_service_quota_change_history_by_quota"
    history.add_response(operation, {"RequestedQuotas": [entry("old", 1)], "NextToken": "2"}, REQUEST)
    history.add_response(operation, {"RequestedQuotas": [entry("new", 2, CaseId="7")]}, REQUEST | {"NextToken": "2"})
    found = account.quota_requests("ec2", ON_DEMAND)
    assert [(request.request_id, request.case_id) for request in found] == [("new", "7"), ("old", None)]


@pytest.mark.parametrize(
    ("status", "is_open"), [("PENDING", True), ("CASE_OPENED", True), ("APPROVED", False), ("DENIED", False)]
)
def test_a_request_is_open_until_it_is_decided(account: AwsQuotas, stub: Stub, status: str, is_open: bool) -> None:
    entry = {"Id": "r", "DesiredValue": 1.0, "Status": status, "Created": NOON}
    operation = "list_requested_service_quota_change_history_by_quota"
    stub("service-quotas").add_response(operation, {"RequestedQuotas": [entry]})
    (request,) = account.quota_requests("ec2", ON_DEMAND)
    assert request.is_open == is_open


def test_the_metered_use_is_the_latest_point_by_the_recommended_statistic(account: AwsQuotas, stub: Stub) -> None:
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
    stub("cloudwatch").add_response("get_metric_statistics", {"Datapoints": points}, parameters)
    assert account.metered_use(METRIC) == 5


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
    ("shown", "vcpus"),
    [
        ([reservation()], 256),
        ([reservation(), reservation(AvailableInstanceCount=1)], 384),
        ([reservation(), reservation(OwnerId="999999999999")], 256),
        ([reservation(ReservationType="capacity-block")], 0),
    ],
)
def test_unused_reservations_of_your_own_count_with_their_free_instances(
    account: AwsQuotas, stub: Stub, shown: list[dict[str, Any]], vcpus: int
) -> None:
    parameters = {"Filters": [{"Name": "state", "Values": ["active"]}]}
    stub("ec2").add_response(
        "describe_capacity_reservations", {"CapacityReservations": shown[:1], "NextToken": "2"}, parameters
    )
    stub("ec2").add_response("describe_capacity_reservations", {"CapacityReservations": shown[1:]})
    stub("ec2").add_response(
        "describe_instance_types",
        {"InstanceTypes": [{"InstanceType": "trn1.32xlarge", "VCpuInfo": {"DefaultVCpus": 128}}]},
    )
    for _ in shown:
        stub("sts").add_response("get_caller_identity", {"Account": "123456789012"})
    assert account.unused_reserved_vcpus("trn") == vcpus


def test_instances_are_those_of_the_family_with_their_market_and_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_types_that_may_not_be_described_leave_the_use_unknown(account: AwsQuotas, stub: Stub) -> None:
    instance = {"InstanceId": "i-1", "InstanceType": "trn1.2xlarge"}
    stub("ec2").add_response("describe_instances", {"Reservations": [{"Instances": [instance]}]})
    stub("ec2").add_client_error("describe_instance_types", "UnauthorizedOperation", "no")
    with pytest.raises(UnavailableError, match="the permission ec2:DescribeInstanceTypes is missing"):
        account.running_instances("trn")
