"""Service Quotas returns seeded values, or those chosen at the start, and accepts requests for increases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import make_network
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.facts import facts
from trainium_local.seeds.vcpu_quotas import quota_for, seeded_quotas

TRN = "L-2C3B7624"
TRN_SPOT = "L-6B0D517C"


@pytest.mark.parametrize("region", builtin_catalog().regions)
def test_every_region_with_trainium_has_the_quota(embedded_aws: EmbeddedAws, region: str) -> None:
    quota = embedded_aws.client("service-quotas", region).get_service_quota(ServiceCode="ec2", QuotaCode=TRN)["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == ("Running On-Demand Trn instances", 256.0)


def test_applied_and_default_quotas_are_listed(embedded_aws: EmbeddedAws) -> None:
    quotas = embedded_aws.client("service-quotas")
    assert quotas.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=TRN)["Quota"]["Value"] == 0
    pages = quotas.get_paginator("list_service_quotas").paginate(ServiceCode="ec2", PaginationConfig={"PageSize": 2})
    listed = [quota["QuotaCode"] for page in pages for quota in page["Quotas"]]
    assert listed == [*(quota.code for quota in seeded_quotas()), facts()["limits"]["elastic_ips"]["code"]]
    defaults = quotas.list_aws_default_service_quotas(ServiceCode="ec2")["Quotas"]
    assert [q["Value"] for q in defaults] == [*(quota.default for quota in seeded_quotas()), 5]
    assert quotas.list_aws_default_service_quotas(ServiceCode="vpc")["Quotas"]


@pytest.mark.parametrize("key", [key for key, value in facts()["limits"].items() if isinstance(value, dict)])
def test_limits_of_the_facts_have_aws_defaults(embedded_aws: EmbeddedAws, key: str) -> None:
    limit = facts()["limits"][key]
    parameters = {"ServiceCode": limit["service"], "QuotaCode": limit["code"]}
    quota = embedded_aws.client("service-quotas").get_service_quota(**parameters)["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == (limit["name"], limit["default"])


def test_unknown_quota_raises_no_such_resource(embedded_aws: EmbeddedAws) -> None:
    with pytest.raises(ClientError) as error:
        embedded_aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-00000000")
    assert error.value.response["Error"]["Code"] == "NoSuchResourceException"


def test_chosen_quota_is_shown_and_enforced(chosen_aws: EmbeddedAws) -> None:
    quota = chosen_aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=TRN)["Quota"]
    assert quota["Value"] == 128
    network = make_network(chosen_aws, zone_id="usw2-az4")
    with pytest.raises(ClientError, match="current vCPU limit of 128"):
        network.run(network.template("two"), count=2)


@pytest.mark.parametrize(("market", "code"), [("on-demand", TRN), ("spot", TRN_SPOT)])
@pytest.mark.parametrize("name", [name for name, kind in builtin_catalog().items() if not kind.is_gpu])
def test_trainium_type_counts_against_trn_quota_of_its_market(name: str, market: str, code: str) -> None:
    quota = quota_for(name, market)
    assert quota is not None
    assert quota.code == code


def test_inferentia_type_counts_against_inf_quota() -> None:
    quota = quota_for("inf2.48xlarge", "on-demand")
    assert quota is not None
    assert quota.code == "L-1945791B"


def used(aws: EmbeddedAws, code: str) -> float:
    """The value of the usage metric that Service Quotas names for a quota."""
    quota = aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]
    metric, now = quota["UsageMetric"], datetime.now(UTC)
    (point,) = aws.client("cloudwatch").get_metric_statistics(
        Namespace=metric["MetricNamespace"],
        MetricName=metric["MetricName"],
        Dimensions=[{"Name": name, "Value": value} for name, value in metric["MetricDimensions"].items()],
        StartTime=now - timedelta(minutes=15),
        EndTime=now,
        Period=300,
        Statistics=[metric["MetricStatisticRecommendation"]],
    )["Datapoints"]
    return point["Maximum"]


def test_usage_metric_counts_only_running_instances(chosen_aws: EmbeddedAws) -> None:
    network = make_network(chosen_aws, zone_id="usw2-az4")
    before = used(chosen_aws, TRN)
    (instance,) = network.run(network.template("counted"))
    assert (used(chosen_aws, TRN), used(chosen_aws, TRN_SPOT)) == (before + 128, 0)
    chosen_aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert used(chosen_aws, TRN) == before


def test_metrics_of_other_namespaces_come_from_moto(embedded_aws: EmbeddedAws) -> None:
    cloudwatch, now = embedded_aws.client("cloudwatch"), datetime.now(UTC)
    cloudwatch.put_metric_data(Namespace="mine", MetricData=[{"MetricName": "loss", "Value": 3.0, "Timestamp": now}])
    span = {"StartTime": now - timedelta(minutes=5), "EndTime": now + timedelta(minutes=5), "Period": 60}
    (point,) = cloudwatch.get_metric_statistics(Namespace="mine", MetricName="loss", Statistics=["Sum"], **span)[
        "Datapoints"
    ]
    assert point["Sum"] == 3


def request_increase(aws: EmbeddedAws, region: str, desired: float, code: str = TRN) -> dict[str, Any]:
    quotas = aws.client("service-quotas", region)
    return quotas.request_service_quota_increase(ServiceCode="ec2", QuotaCode=code, DesiredValue=desired)[
        "RequestedQuota"
    ]


def history(aws: EmbeddedAws, region: str, **more: str) -> list[dict[str, Any]]:
    pages = aws.client("service-quotas", region).get_paginator("list_requested_service_quota_change_history_by_quota")
    parameters = {"ServiceCode": "ec2", "QuotaCode": TRN, **more}
    return [r for page in pages.paginate(**parameters) for r in page["RequestedQuotas"]]


def test_open_increase_request_is_in_history_of_its_region(embedded_aws: EmbeddedAws) -> None:
    made = request_increase(embedded_aws, "us-east-1", 1024)
    assert (made["Status"], made["DesiredValue"]) == ("PENDING", 1024)
    (shown,) = history(embedded_aws, "us-east-1")
    assert shown["Id"] == made["Id"]
    assert history(embedded_aws, "us-east-1", Status="APPROVED") == []
    assert history(embedded_aws, "eu-north-1") == []


@pytest.mark.parametrize(
    ("desired", "code", "error"),
    [(2048, TRN, "ResourceAlreadyExists"), (256, TRN_SPOT, "IllegalArgument"), (1, "L-00000000", "NoSuchResource")],
)
def test_invalid_increase_request_is_refused(embedded_aws: EmbeddedAws, desired: float, code: str, error: str) -> None:
    if error == "ResourceAlreadyExists":
        request_increase(embedded_aws, "us-east-2", 1024)
    with pytest.raises(ClientError) as refused:
        request_increase(embedded_aws, "us-east-2", desired, code)
    assert refused.value.response["Error"]["Code"] == f"{error}Exception"


def sagemaker_names(aws: EmbeddedAws, operation: str) -> set[str]:
    pages = aws.client("service-quotas").get_paginator(operation)
    return {q["QuotaName"] for page in pages.paginate(ServiceCode="sagemaker") for q in page["Quotas"]}


def test_sagemaker_has_the_quotas_of_the_facts(embedded_aws: EmbeddedAws) -> None:
    for name, code in facts()["sagemaker_quotas"]["codes"].items():
        quota = embedded_aws.client("service-quotas").get_service_quota(ServiceCode="sagemaker", QuotaCode=code)
        assert quota["Quota"]["QuotaName"] == name


def test_some_sagemaker_quotas_exist_only_as_defaults(embedded_aws: EmbeddedAws) -> None:
    only = sagemaker_names(embedded_aws, "list_aws_default_service_quotas") - sagemaker_names(
        embedded_aws, "list_service_quotas"
    )
    assert "ml.trn2.48xlarge for training job usage" in only
