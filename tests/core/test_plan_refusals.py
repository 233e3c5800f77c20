"""What a plan refuses before any AWS call, with key, value, allowed values, nearest name and fix."""

from pathlib import Path
from typing import Any

import pytest

from tests.core.plans import GOOD, RESERVATION, from_settings, problems_of, the_problem
from trainium_core.plan import Plan
from trainium_core.problems import PlanError

VPC = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}


@pytest.mark.parametrize(("name", "nearest"), [("node", "nodes"), ("zone", None)])
def test_unknown_setting_is_refused_with_the_nearest(name: str, nearest: str | None) -> None:
    problem = the_problem(**{name: "4"})
    assert (problem.key, problem.got, problem.nearest) == (name, "4", nearest)
    assert problem.fix.startswith(f"write trn:{nearest}" if nearest else "remove it")
    assert "groups cluster, network, cache" in problem.allowed


@pytest.mark.parametrize(
    ("got", "nearest"),
    [("trn1.32xlarg", "trn1.32xlarge"), ("ml.trn1.32xlarge", "trn1.32xlarge"), ("p3.16xlarge", None)],
)
def test_unknown_type_is_refused(got: str, nearest: str | None) -> None:
    problem = the_problem(instance_type=got)
    assert (problem.key, problem.got, problem.nearest) == ("instance_type", got, nearest)
    assert problem.allowed.startswith("trn1.2xlarge, trn1.32xlarge")
    assert "trn:catalog" in problem.fix


@pytest.mark.parametrize("got", [0, "0", -1, "-1"])
def test_fewer_than_one_node_is_refused(got: Any) -> None:
    problem = the_problem(nodes=got)
    assert (problem.key, problem.got, problem.allowed) == ("nodes", got, "a whole number, 1 or more")


@pytest.mark.parametrize("got", [1.5, "1.5", "four", "", "1e3", True, None, "²", "٣"])
def test_fractional_count_is_refused(got: Any) -> None:
    problem = the_problem(nodes=got)
    assert (problem.key, problem.got) == ("nodes", got)
    assert problem.fix == "write the number in digits, such as 1"


@pytest.mark.parametrize("own_network", [{}, VPC])
@pytest.mark.parametrize("got", [10**9, "1000000000"])
def test_huge_number_of_nodes_fits_no_subnet(got: Any, own_network: dict[str, str]) -> None:
    problem = the_problem(nodes=got, **own_network)
    assert problem.key == "nodes"
    assert "each takes 8 of a subnet's" in problem.allowed
    assert "trn:secondary_interface_type=efa-only" in problem.fix


def test_several_nodes_without_efa_are_refused() -> None:
    problem = the_problem(instance_type="trn1.2xlarge", nodes=2)
    assert (problem.key, problem.got) == ("nodes", 2)
    assert problem.allowed == "1 with trn1.2xlarge, which has no EFA and cannot train across nodes"
    assert "trn1.32xlarge" in problem.fix


def test_type_missing_in_the_region_is_refused_with_its_regions() -> None:
    problem = the_problem(instance_type="trn2.48xlarge", region="us-west-2")
    assert (problem.key, problem.got) == ("region", "us-west-2")
    assert problem.allowed == "a region that offers trn2.48xlarge: ap-south-2, us-east-2"
    assert "trn1.2xlarge, trn1.32xlarge, trn1n.32xlarge" in problem.fix


def test_zone_without_the_type_is_refused_with_zones_that_have_it() -> None:
    problem = the_problem(availability_zone_id="usw2-az2")
    assert (problem.key, problem.got) == ("availability_zone_id", "usw2-az2")
    assert problem.allowed == "a zone of us-west-2 that offers trn1.32xlarge: usw2-az1, usw2-az4"
    assert problem.fix == "choose usw2-az1 or usw2-az4, or leave the setting out"


def test_zone_name_instead_of_zone_id_is_reported() -> None:
    problem = the_problem(availability_zone_id="us-west-2a")
    assert "means another zone in every account" in problem.fix


@pytest.mark.parametrize("capacity", ["capacity-block", "reservation"])
def test_reserved_capacity_requires_its_reservation(capacity: str) -> None:
    problem = the_problem(capacity=capacity)
    assert (problem.key, problem.got) == ("reservation_id", None)
    assert "such as cr-0123456789abcdef0" in problem.allowed
    assert capacity in problem.fix


@pytest.mark.parametrize("capacity", ["on-demand", "spot"])
def test_reservation_requires_reserved_capacity(capacity: str) -> None:
    problem = the_problem(capacity=capacity, reservation_id=RESERVATION)
    assert (problem.key, problem.got) == ("reservation_id", RESERVATION)
    assert problem.allowed == f"nothing with capacity {capacity}"
    assert "choose capacity-block or reservation" in problem.fix


def test_capacity_that_a_type_lacks_is_refused() -> None:
    problem = the_problem(instance_type="trn1n.32xlarge", capacity="capacity-block", reservation_id=RESERVATION)
    assert problem.key == "capacity"
    assert problem.allowed == "what trn1n.32xlarge supports: on-demand, spot"
    assert "trn1.32xlarge, trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge" in problem.fix


def test_more_nodes_than_a_capacity_block_allows_are_refused() -> None:
    reserved = {"capacity": "capacity-block", "reservation_id": RESERVATION}
    assert problems_of(nodes=64, **reserved) == []
    assert the_problem(nodes=65, **reserved).allowed.startswith("up to 64")


@pytest.mark.parametrize(
    ("key", "got", "example"),
    [
        ("vpc_id", "vpc-0123456789ABCDEF0", "vpc-0123456789abcdef0"),
        ("vpc_id", "vpc-0123456789abcdef0\n", "vpc-0123456789abcdef0"),
        ("ami", "ami-12", "AMI id"),
        ("reservation_id", "cr-", "cr-0123456789abcdef0"),
        ("availability_zone_id", "usw2", "usw2-az4"),
        ("region", "us west 2", "us-west-2"),
        ("root_device_name", "sda1", "/dev/sda1"),
        ("root_volume_gib", "16385", "from 8 to 16384"),
        ("cache_expiration_days", "0", "from 1 to 3650"),
        ("node_timeout_minutes", "56", "from 1 to 55"),
    ],
)
def test_malformed_value_is_refused_with_its_format(key: str, got: str, example: str) -> None:
    problem = next(problem for problem in problems_of(**{key: got}) if problem.key == key)
    assert problem.got == got
    assert example in problem.allowed


def test_existing_vpc_requires_subnet() -> None:
    problem = the_problem(vpc_id=VPC["vpc_id"])
    assert (problem.key, problem.got) == ("subnet_id", None)
    assert VPC["vpc_id"] in problem.fix


@pytest.mark.parametrize(("key", "got"), [("subnet_id", VPC["subnet_id"]), ("route_table_id", "rtb-0123456789abcdef0")])
def test_subnet_or_route_table_requires_vpc(key: str, got: str) -> None:
    problem = the_problem(**{key: got})
    assert (problem.key, problem.allowed) == (key, "nothing without trn:vpc_id")


@pytest.mark.parametrize("given", ["10.1.0", "resolver", 7, "10.1.0.2,10.1.0.3,10.1.0.4,10.1.0.5,10.1.0.6"])
def test_more_than_four_dns_servers_are_refused(given: Any) -> None:
    assert the_problem(**VPC, dns_servers=given).allowed.startswith("up to 4 IPv4 addresses")


@pytest.mark.parametrize(("key", "got"), [("egress", "nat-gateway"), ("vpc_cidr", "10.9.0.0/16")])
def test_new_vpc_settings_are_refused_with_an_existing_vpc(key: str, got: str) -> None:
    problem = the_problem(**VPC, **{key: got})
    assert (problem.key, problem.got, problem.allowed) == (key, got, "nothing with trn:vpc_id")


@pytest.mark.parametrize("got", ["8.8.0.0/16", "10.0.0.0/8", "10.0.0.0/25", "10.0.0.1/16", "x"])
def test_cidr_that_a_vpc_cannot_have_is_refused(got: str) -> None:
    problem = the_problem(vpc_cidr=got)
    assert (problem.key, problem.got) == ("vpc_cidr", got)
    assert "a private IPv4 block from /16 to /24" in problem.allowed


@pytest.mark.parametrize(
    ("type_name", "lnc", "allowed"), [("trn1.32xlarge", 2, "1 on"), ("trn2.48xlarge", 4, "1 or 2")]
)
def test_lnc_must_be_one_that_the_type_supports(type_name: str, lnc: int, allowed: str) -> None:
    region = "us-east-2"
    problem = the_problem(instance_type=type_name, region=region, logical_neuroncore_config=lnc)
    assert (problem.key, problem.got) == ("logical_neuroncore_config", lnc)
    assert problem.allowed.startswith(allowed)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, "read-write for a new bucket"),
        ({"cache_bucket": "shared", "stacks": ["cluster", "sagemaker"]}, "read-write with sagemaker in trn:stacks"),
        ({"cache_bucket": "shared", "precompile_instance_type": "r7i.12xlarge"}, "read-write with trn:precompile"),
    ],
)
def test_read_only_cache_requires_another_writer(settings: dict[str, Any], allowed: str) -> None:
    problem = the_problem(cache_access="read", **settings)
    assert problem.key == "cache_access"
    assert problem.allowed.startswith(allowed)


def test_existing_bucket_is_never_destroyed() -> None:
    problem = the_problem(cache_bucket="my-cache", cache_at_destroy="destroy")
    assert (problem.key, problem.allowed) == ("cache_at_destroy", "retain with trn:cache_bucket")


@pytest.mark.parametrize(
    "got",
    [
        *("team", "aws:x=1", "trn:cluster=mine", {"a": None}, {"a": ["b"]}, {"": "x"}, {"a": "<b>"}, ["a"], 5),
        pytest.param({"Team": "ml", "team": "ml"}, id="one key to IAM"),
        pytest.param({f"tag{number}": "x" for number in range(41)}, id="too many"),
    ],
)
def test_tags_that_aws_refuses_are_refused(got: Any) -> None:
    assert the_problem(tags=got).key == "tags"


@pytest.mark.parametrize("got", ["none.sh", "", "x" * 5000, "a\0b", 7])
def test_missing_script_is_refused(got: Any) -> None:
    assert the_problem(setup_script=got).key == "setup_script"


def test_all_problems_are_reported_at_once() -> None:
    keys = [
        problem.key
        for problem in problems_of(
            instance_type="p3.16xlarge", nodes="four", capacity="spot", reservation_id=RESERVATION, vpc_id="x", node="1"
        )
    ]
    assert sorted(keys) == ["instance_type", "node", "nodes", "reservation_id", "vpc_id"]


def test_message_has_key_value_allowed_values_and_fix() -> None:
    with pytest.raises(PlanError) as refused:
        from_settings(capacity="ondemand")
    assert str(refused.value) == (
        "The plan has 1 problem; nothing was deployed.\n"
        "\n"
        "  trn:capacity: got 'ondemand'\n"
        "    allowed: on-demand, spot, capacity-block, reservation; nearest: on-demand\n"
        "    fix:     choose one of the allowed values, spelt exactly\n"
    )


def test_python_code_gets_the_python_type_of_a_value() -> None:
    with pytest.raises(PlanError, match=r"give 4, of type int"):
        Plan(**GOOD, nodes="4")  # type: ignore[arg-type]


def test_dns_servers_require_an_existing_vpc() -> None:
    assert the_problem(dns_servers="10.1.0.2").allowed == "nothing without trn:vpc_id"


def test_cidr_of_docker_bridge_is_refused() -> None:
    assert "Docker's own bridge" in the_problem(vpc_cidr="172.17.0.0/16").fix


def test_binary_script_is_refused(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_bytes(b"\xff\xfe")
    assert "cannot be read as text" in the_problem(setup_script=str(tmp_path / "setup.sh")).fix
