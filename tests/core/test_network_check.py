"""Whether a network has addresses for the nodes, DNS and a path to AWS."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import FakeAccount
from tests.core.fake_network import SUBNET, TABLE, VPC
from tests.core.findings import finding_of
from tests.core.plans import EXISTING_VPC, from_settings
from trainium_core.aws.network import VpcEndpoint
from trainium_core.permissions.roles import role_scope
from trainium_core.preflight.endpoint_policy_check import s3_needs
from trainium_core.preflight.finding import Finding

CLOSED = replace(TABLE, default_target=None)
ALLOWS_ALL = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2008-10-17", "Statement": list(statements)})


OPEN = policy(ALLOWS_ALL)
S3_GATEWAY = VpcEndpoint(service="s3", kind="gateway", route_table_ids=[TABLE.route_table_id], policy=OPEN)
SESSIONS = tuple(
    VpcEndpoint(service=name, kind="interface", private_dns=True, policy=OPEN) for name in ("ssm", "ssmmessages")
)


def network(**account: Any) -> Finding:
    """The finding about an existing VPC."""
    return finding_of("network", FakeAccount(**account), **EXISTING_VPC)


def with_route_table(route_table_id: str = TABLE.route_table_id, **account: Any) -> Finding:
    return finding_of("network", FakeAccount(**account), **EXISTING_VPC, route_table_id=route_table_id)


def test_vpc_with_room_and_nat_gateway_passes() -> None:
    finding = network()
    assert finding.outcome == "pass"
    assert "subnet-0123456789abcdef0 in usw2-az4 has 251 free addresses" in finding.found
    assert "16 addresses" in finding.needed


def test_closed_vpc_with_endpoints_passes() -> None:
    assert network(table=CLOSED, vpc_endpoints=[S3_GATEWAY, *SESSIONS]).outcome == "pass"


@pytest.mark.parametrize(
    ("account", "says"),
    [
        ({"found_vpc": None}, "vpc-0123456789abcdef0 does not exist in us-west-2"),
        ({"found_subnet": None}, "subnet-0123456789abcdef0 does not exist in us-west-2"),
        ({"found_subnet": replace(SUBNET, vpc_id="vpc-1")}, "is in vpc-1, not in vpc-0123456789abcdef0"),
    ],
)
def test_missing_or_mismatched_vpc_and_subnet_fail(account: dict[str, Any], says: str) -> None:
    finding = network(**account)
    assert finding.outcome == "fail"
    assert says in finding.found
    assert "set trn:" in finding.fix


def test_efa_only_interface_uses_no_address() -> None:
    account = FakeAccount(found_subnet=replace(SUBNET, free_addresses=2))
    assert finding_of("network", account, **EXISTING_VPC, secondary_interface_type="efa-only").outcome == "pass"


@given(free=st.integers(0, 40), held=st.integers(0, 40))
def test_addresses_of_existing_nodes_count_as_free(free: int, held: int) -> None:
    finding = network(found_subnet=replace(SUBNET, free_addresses=free), addresses_held=held)
    assert (finding.outcome == "pass") == (free + held >= 16)


def test_endpoints_need_dns_hostnames_and_nat_gateway_does_not() -> None:
    without = replace(VPC, dns_hostnames=False)
    assert network(found_vpc=without).outcome == "pass"
    assert network(found_vpc=without, table=CLOSED, vpc_endpoints=[S3_GATEWAY, *SESSIONS]).outcome == "warn"


OWN_RESOLVER = replace(VPC, dns_servers=["10.1.0.2", "AmazonProvidedDNS"])


def test_resolver_blocked_by_security_group_fails() -> None:
    finding = network(found_vpc=OWN_RESOLVER)
    assert finding.outcome == "fail"
    assert "10.1.0.2" in finding.found
    assert finding.fix == "set trn:dns_servers to 10.1.0.2"


def test_unreadable_dhcp_options_are_unknown() -> None:
    assert network(found_vpc=replace(VPC, dns_servers=None)).outcome == "unknown"


def test_dhcp_options_without_a_resolver_are_a_warning() -> None:
    assert network(found_vpc=replace(VPC, dns_servers=[])).outcome == "warn"


OTHER_BUCKET = {**ALLOWS_ALL, "Resource": ["arn:aws:s3:::team-data", "arn:aws:s3:::team-data/*"]}
OWN_BUCKETS = {
    **ALLOWS_ALL,
    "Resource": [f"arn:aws:s3:::{bucket}{end}" for bucket in ("trnclusterstack-*", "cdk-*") for end in ("", "/*")],
}
FOR_AN_ORGANISATION = {**ALLOWS_ALL, "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}}
DENIED = {**ALLOWS_ALL, "Effect": "Deny", "Action": "s3:Put*"}


@pytest.mark.parametrize(
    ("statements", "outcome"),
    [
        ([ALLOWS_ALL], "pass"),
        ([OWN_BUCKETS], "pass"),
        ([{**ALLOWS_ALL, "Resource": ["arn:aws:s3:::trnclusterst?ck-*", "arn:aws:s3:::cdk-*"]}], "pass"),
        ([{**ALLOWS_ALL, "Action": "s3:Get*"}], "fail"),
        ([OTHER_BUCKET], "fail"),
        ([ALLOWS_ALL, DENIED], "fail"),
        ([FOR_AN_ORGANISATION], "unknown"),
        ([{**ALLOWS_ALL, "Principal": {"AWS": "arn:aws:iam::123456789012:root"}}], "unknown"),
        ([{"Effect": "Allow", "Principal": "*", "NotAction": "s3:DeleteBucket", "Resource": "*"}], "unknown"),
    ],
)
def test_s3_endpoint_policy_must_allow_the_nodes(statements: list[dict[str, Any]], outcome: str) -> None:
    finding = network(table=CLOSED, vpc_endpoints=[replace(S3_GATEWAY, policy=policy(*statements)), *SESSIONS])
    assert finding.outcome == outcome


def test_s3_needs_name_buckets_as_permissions_do() -> None:
    """Physical names contain only the beginning of a long stack name."""
    plan = from_settings(cluster_name="research-llama")
    named = role_scope(plan).fill_in(["arn:aws:s3:::{bucket}-*"])
    assert named == ["arn:aws:s3:::research-llama-trncluste*-*"]
    assert {need.resource for need in s3_needs(plan) if need.action == "s3:ListBucket"} == set(named)


@pytest.mark.parametrize(("access", "writes"), [("read", False), ("read-write", True)])
def test_read_only_cache_bucket_needs_no_writes(access: str, writes: bool) -> None:
    needs = s3_needs(from_settings(cache_bucket="our-cache", cache_access=access))
    needed = [need.action for need in needs if need.resource.startswith("arn:aws:s3:::our-cache")]
    assert ("s3:PutObject" in needed, "s3:GetObject" in needed) == (writes, True)


def test_network_without_route_to_s3_fails() -> None:
    finding = network(table=CLOSED, vpc_endpoints=SESSIONS)
    assert finding.outcome == "fail"
    assert finding.fix.startswith("set trn:route_table_id to rtb-0123456789abcdef0")


def test_gateway_endpoint_on_another_route_table_fails() -> None:
    elsewhere = replace(S3_GATEWAY, route_table_ids=["rtb-1"])
    assert network(table=CLOSED, vpc_endpoints=[elsewhere, *SESSIONS]).outcome == "fail"


def test_interface_endpoint_of_s3_passes_only_with_private_dns() -> None:
    s3 = VpcEndpoint(service="s3", kind="interface", private_dns=True, policy=OPEN)
    assert network(table=CLOSED, vpc_endpoints=[s3, *SESSIONS]).outcome == "pass"
    assert network(table=CLOSED, vpc_endpoints=[replace(s3, private_dns=False), *SESSIONS]).outcome == "fail"


def test_path_through_a_transit_gateway_is_unknown_unless_endpoints_replace_it() -> None:
    behind = replace(TABLE, default_target="tgw-1")
    assert network(table=behind).outcome == "unknown"
    assert network(table=behind, vpc_endpoints=[S3_GATEWAY]).outcome == "warn"
    assert network(table=behind, vpc_endpoints=[S3_GATEWAY, *SESSIONS]).outcome == "pass"


@pytest.mark.parametrize("target", [None, "igw-1"])
def test_missing_session_endpoint_is_a_warning(target: str | None) -> None:
    finding = network(table=replace(TABLE, default_target=target), vpc_endpoints=[S3_GATEWAY, SESSIONS[0]])
    assert finding.outcome == "warn"
    assert "no sessions" in finding.found
    assert finding.found.count("ssmmessages") == 1
    assert finding.fix == "add interface endpoints for ssmmessages, or a NAT gateway"


def test_network_of_training_jobs_needs_a_route_to_s3_and_no_sessions() -> None:
    training = {**EXISTING_VPC, "stacks": "sagemaker", "sagemaker_vpc": "on"}
    with_s3, without = FakeAccount(table=CLOSED, vpc_endpoints=[S3_GATEWAY]), FakeAccount(table=CLOSED)
    assert finding_of("network", with_s3, **training).outcome == "pass"
    finding = finding_of("network", without, **training)
    assert (finding.outcome, finding.needed) == ("fail", "a route to S3, which training jobs use")


def test_route_table_must_be_that_of_the_subnet() -> None:
    finding = with_route_table("rtb-0fedcba9876543210")
    assert (finding.outcome, finding.fix) == ("fail", "set trn:route_table_id to rtb-0123456789abcdef0")


def test_second_gateway_endpoint_on_a_route_table_fails() -> None:
    finding = with_route_table(vpc_endpoints=[S3_GATEWAY])
    assert (finding.outcome, finding.fix) == ("fail", "remove trn:route_table_id")


def test_restrictive_policy_of_a_session_endpoint_is_a_warning() -> None:
    restricted = replace(SESSIONS[1], policy=policy({**ALLOWS_ALL, "Action": "ssmmessages:Open*"}))
    finding = network(table=CLOSED, vpc_endpoints=[S3_GATEWAY, SESSIONS[0], restricted])
    assert (finding.outcome, "sessions may not work" in finding.found) == ("warn", True)


def test_gateway_endpoint_of_the_cluster_passes() -> None:
    assert with_route_table(vpc_endpoints=[replace(S3_GATEWAY, cluster="trn-pilot")]).outcome == "pass"


@given(others=st.integers(0, 20), limit=st.integers(0, 20))
def test_new_vpc_needs_room_in_the_quota(others: int, limit: int) -> None:
    finding = finding_of("network", FakeAccount(other_vpcs=others, vpc_limit=limit))
    assert finding.outcome == ("pass" if others + 1 <= limit else "fail")
    assert f"{others} of {limit} VPCs" in finding.found


def test_vpc_without_dns_is_a_warning() -> None:
    assert network(found_vpc=replace(VPC, dns_support=False)).outcome == "warn"


def test_allowed_custom_resolver_is_a_warning() -> None:
    finding = finding_of("network", FakeAccount(found_vpc=OWN_RESOLVER), **EXISTING_VPC, dns_servers="10.1.0.2")
    assert finding.outcome == "warn"
    assert "cannot be checked here" in finding.found


def test_unreadable_endpoint_policy_is_unknown() -> None:
    assert network(table=CLOSED, vpc_endpoints=[replace(S3_GATEWAY, policy=None), *SESSIONS]).outcome == "unknown"


def test_subnet_without_route_table_is_unknown() -> None:
    assert network(table=None).outcome == "unknown"


def test_missing_vpc_quota_is_unknown() -> None:
    assert finding_of("network", FakeAccount(vpc_limit=None)).outcome == "unknown"
