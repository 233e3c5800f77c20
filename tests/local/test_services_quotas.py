"""Service Quotas answers for EC2, with the seeded values or those chosen at the start."""

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import make_network
from trainium_core.catalog import builtin_catalog
from trainium_local.seeds.vcpu_quotas import quota_for, seeded_quotas

TRN = "L-2C3B7624"


@pytest.mark.parametrize("region", builtin_catalog().regions)
def test_every_region_with_trainium_has_the_quota(embedded_aws: EmbeddedAws, region: str) -> None:
    quota = embedded_aws.client("service-quotas", region).get_service_quota(ServiceCode="ec2", QuotaCode=TRN)["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == ("Running On-Demand Trn instances", 256.0)


def test_the_default_of_aws_is_not_the_applied_value(embedded_aws: EmbeddedAws) -> None:
    quotas = embedded_aws.client("service-quotas")
    assert quotas.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=TRN)["Quota"]["Value"] == 0


def test_the_applied_quotas_are_listed_over_pages(embedded_aws: EmbeddedAws) -> None:
    pages = embedded_aws.client("service-quotas").get_paginator("list_service_quotas")
    listed = [
        q["QuotaCode"]
        for page in pages.paginate(ServiceCode="ec2", PaginationConfig={"PageSize": 2})
        for q in page["Quotas"]
    ]
    assert listed == [quota.code for quota in seeded_quotas()]


def test_the_default_quotas_are_listed(embedded_aws: EmbeddedAws) -> None:
    listed = embedded_aws.client("service-quotas").list_aws_default_service_quotas(ServiceCode="ec2")["Quotas"]
    assert [q["Value"] for q in listed] == [quota.default for quota in seeded_quotas()]


def test_other_services_keep_what_moto_knows(embedded_aws: EmbeddedAws) -> None:
    assert embedded_aws.client("service-quotas").list_aws_default_service_quotas(ServiceCode="vpc")["Quotas"]


def test_an_unknown_quota_is_no_such_resource(embedded_aws: EmbeddedAws) -> None:
    with pytest.raises(ClientError) as error:
        embedded_aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-00000000")
    assert error.value.response["Error"]["Code"] == "NoSuchResourceException"


def test_a_quota_chosen_at_the_start_is_shown(chosen_aws: EmbeddedAws) -> None:
    quota = chosen_aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=TRN)["Quota"]
    assert quota["Value"] == 128


def test_a_quota_chosen_at_the_start_is_enforced(chosen_aws: EmbeddedAws) -> None:
    network = make_network(chosen_aws, zone_id="usw2-az4")
    with pytest.raises(ClientError, match="current vCPU limit of 128"):
        network.run(network.template("two"), count=2)


def test_every_trainium_type_counts_against_the_trn_quotas() -> None:
    codes = {quota.code for name in builtin_catalog() if (quota := quota_for(name, "on-demand"))}
    assert codes == {TRN}


def test_an_inferentia_type_does_not_count_against_the_trn_quotas() -> None:
    quota = quota_for("inf2.48xlarge", "on-demand")
    assert quota is not None
    assert quota.code == "L-1945791B"
