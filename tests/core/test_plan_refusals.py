"""What a plan refuses before any AWS call, with key, value, allowed values, nearest name and fix."""

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from tests.core.plans import (
    EXISTING_EFS,
    EXISTING_LUSTRE,
    EXISTING_VPC,
    GOOD,
    RESERVATION,
    from_settings,
    problems_of,
    the_problem,
)
from trainium_core.plan import Plan
from trainium_core.problems import PlanError

BLOCK = {"capacity": "capacity-block", "reservation_id": RESERVATION}
KMS_KEY = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
IMAGE = "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/training:1.0"
HYDERABAD = {"instance_type": "trn2.48xlarge", "region": "ap-south-2"}
OHIO = {"instance_type": "trn2.48xlarge", "region": "us-east-2"}
NEW_FILE_SYSTEMS = {"fsx_lustre": 1200, "efs": "new"}

MALFORMED: list[tuple[str, Any, str]] = [
    *[("nodes", got, "a whole number, 1 or more") for got in (0, "0", -1, "-1")],
    *[("nodes", got, "in digits, such as 1") for got in (1.5, "1.5", "four", "", "1e3", True, None, "²", "٣")],
    ("vpc_id", "vpc-0123456789ABCDEF0", "such as vpc-0123456789abcdef0"),
    ("vpc_id", "vpc-0123456789abcdef0\n", "such as vpc-0123456789abcdef0"),
    ("ami", "ami-12", "an AMI ID"),
    ("reservation_id", "cr-", "such as cr-0123456789abcdef0"),
    ("availability_zone_id", "usw2", "such as usw2-az4"),
    ("availability_zone_id", "us-west-2a", "a zone name can mean different zones"),
    ("region", "us west 2", "such as us-west-2"),
    ("root_device_name", "sda1", "/dev/sda1"),
    ("root_volume_gib", "16385", "from 8 to 16384"),
    ("cache_expiration_days", "0", "from 1 to 3650"),
    ("node_timeout_minutes", "56", "from 1 to 55"),
    *[
        ("vpc_cidr", got, "a private IPv4 block from /16 to /24")
        for got in ("8.8.0.0/16", "10.0.0.0/8", "10.0.0.0/25", "10.0.0.1/16", "x")
    ],
    *[
        ("dns_servers", got, "up to 4 IPv4 addresses")
        for got in ("10.1.0", "resolver", 7, "10.1.0.2,10.1.0.3,10.1.0.4,10.1.0.5,10.1.0.6")
    ],
    *[("fsx_lustre", got, "1200, or a multiple of 2400") for got in (1300, "3600", "-2400")],
    *[("efs", got, "new, or the ID of a file system") for got in ("yes", "fs-xyz", 1200)],
    ("ends", "2026-12-01T18:00", "add the time zone"),
    ("notify_email", "someone", "an e-mail address"),
    ("notify_email", "Some One <some@one.com>", "an e-mail address"),
    ("budget_usd", "99.50", "in digits"),
    ("idle_minutes", "29", "from 30"),
    ("sagemaker_data", "corpus/wiki", "an S3 URL"),
    ("sagemaker_max_runtime_hours", 0, "1 or more"),
    ("sagemaker_max_instances", 0, "1 or more"),
    ("stacks", "", "cluster, sagemaker"),
    *[("setup_script", got, "") for got in ("none.sh", "", "x" * 5000, "a\0b", 7)],
    ("nodes", "1" * 19, "at most 18 digits"),
    ("dns_servers", ["10.0.0"], "specify an IPv4 address, such as 10.0.0.2"),
    ("tags", {"": "x"}, "a key has 1 to 128 characters"),
    *[("tags", got, "") for got in ("team", "aws:x=1", "trn:cluster=mine", ["a"], 5)],
    *[("tags", got, "") for got in ({"a": None}, {"a": ["b"]}, {"": "x"}, {"a": "<b>"})],
    ("tags", {"Team": "ml", "team": "ml"}, "IAM treats them as one"),
    ("tags", {f"tag{number}": "x" for number in range(41)}, "40 tags at most"),
]

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"instance_type": "trn1.2xlarge", "nodes": 2}, "nodes", "1 with trn1.2xlarge, which has no EFA"),
    ({"instance_type": "trn2.48xlarge"}, "region", "a region that offers trn2.48xlarge: ap-south-2, us-east-2"),
    ({"availability_zone_id": "usw2-az2"}, "availability_zone_id", "choose usw2-az1 or usw2-az4, or remove"),
    ({"capacity": "capacity-block"}, "reservation_id", "such as cr-0123456789abcdef0"),
    ({"capacity": "reservation"}, "reservation_id", "such as cr-0123456789abcdef0"),
    ({"reservation_id": RESERVATION}, "reservation_id", "no value with capacity on-demand"),
    ({"capacity": "spot", "reservation_id": RESERVATION}, "reservation_id", "choose capacity-block or reservation"),
    ({**BLOCK, "instance_type": "trn1n.32xlarge"}, "capacity", "on-demand, spot, reservation on trn1n.32xlarge"),
    ({**BLOCK, "nodes": 65}, "nodes", "up to 64"),
    ({"nodes": 10**9}, "nodes", "each node needs 8 of the subnet's"),
    ({"nodes": 10**9}, "nodes", "reduce trn:nodes, or set trn:secondary_interface_type to efa-only"),
    ({"nodes": 10**9, "vpc_cidr": "10.0.0.0/24"}, "nodes", "or set trn:vpc_cidr to a larger block, up to /16 or"),
    ({"nodes": "1000000000", **EXISTING_VPC}, "nodes", "8 of the largest possible subnet's 65531 addresses"),
    ({"nodes": "1000000000", **EXISTING_VPC}, "nodes", "trn:secondary_interface_type to efa-only"),
    ({**OHIO, "logical_neuroncore_config": 4}, "logical_neuroncore_config", "1 or 2 on trn2.48xlarge"),
    ({"logical_neuroncore_config": 2}, "logical_neuroncore_config", "1 on trn1.32xlarge"),
    # Network
    ({"vpc_id": EXISTING_VPC["vpc_id"]}, "subnet_id", EXISTING_VPC["vpc_id"]),
    ({"subnet_id": EXISTING_VPC["subnet_id"]}, "subnet_id", "no value without trn:vpc_id"),
    ({"route_table_id": "rtb-0123456789abcdef0"}, "route_table_id", "no value without trn:vpc_id"),
    ({"dns_servers": "10.1.0.2"}, "dns_servers", "no value without trn:vpc_id"),
    ({**EXISTING_VPC, "egress": "nat-gateway"}, "egress", "no value with trn:vpc_id"),
    ({**EXISTING_VPC, "vpc_cidr": "10.9.0.0/16"}, "vpc_cidr", "no value with trn:vpc_id"),
    ({"vpc_cidr": "172.17.0.0/16"}, "vpc_cidr", "Docker's own bridge"),
    # Compile cache
    ({"cache_access": "read"}, "cache_access", "read-write for a new bucket"),
    (
        {"cache_access": "read", "cache_bucket": "shared", "stacks": ["cluster", "sagemaker"]},
        "cache_access",
        "read-write with sagemaker in trn:stacks",
    ),
    ({"cache_bucket": "my-cache", "cache_at_destroy": "destroy"}, "cache_at_destroy", "retain with trn:cache_bucket"),
    (
        {"cache_bucket": "my-cache", "cache_expiration_days": "30"},
        "cache_expiration_days",
        "an existing bucket keeps its lifecycle rules",
    ),
    # File systems
    *[
        (
            {**EXISTING_VPC, **EXISTING_LUSTRE, key: None},
            key,
            "describe-file-systems --region us-west-2 --file-system-ids fs-",
        )
        for key in ("fsx_lustre_mount_name", "fsx_lustre_security_group")
    ],
    (EXISTING_LUSTRE, "fsx_lustre", "trn:vpc_id and trn:subnet_id"),
    (EXISTING_EFS, "efs", "trn:vpc_id and trn:subnet_id"),
    *[
        ({**new, key: value}, key, fix)
        for new, fix in (({}, " too, or remove trn:"), (NEW_FILE_SYSTEMS, "a new file system has its own"))
        for key, value in {**EXISTING_LUSTRE, **EXISTING_EFS}.items()
        if key not in NEW_FILE_SYSTEMS
    ],
    ({"file_systems_at_destroy": "retain"}, "file_systems_at_destroy", "no value without a new file system"),
    (
        {"file_systems_at_destroy": "retain", **EXISTING_VPC, **EXISTING_LUSTRE, **EXISTING_EFS},
        "file_systems_at_destroy",
        "no value without a new file system",
    ),
    (
        {"file_systems_at_destroy": "retain", "fsx_lustre": 1200},
        "file_systems_at_destroy",
        "its subnet could not be deleted",
    ),
    # End and budget
    ({"ends_action": "destroy"}, "ends_action", "set trn:ends too, or remove this value"),
    (
        {"notify_email": "someone@example.com"},
        "notify_email",
        "or a Capacity Block too, or remove this value",
    ),
    (
        {"stacks": "eks", "eks_cluster": "ours", "job_notices": "on"},
        "job_notices",
        "off without cluster or pcs",
    ),
    ({"stacks": "sagemaker", "job_notices": "on"}, "job_notices", "trn:sagemaker_report_email gets a message"),
    ({"budget_action": "stop"}, "budget_action", "set trn:budget_usd too, or remove this value"),
    ({**HYDERABAD, "budget_usd": "500"}, "budget_usd", "trn:cluster=trn-pilot"),
    ({"idle_minutes": "60", **BLOCK}, "idle_minutes", "paid in advance"),
    # Stacks: settings that the service does not support
    (
        {"stacks": "sagemaker", "instance_type": "trn2.3xlarge", "region": "sa-east-1"},
        "instance_type",
        "with sagemaker",
    ),
    ({"stacks": "pcs", "ends": "5d", "ends_action": "sleep"}, "ends_action", "or set it to destroy"),
    ({"stacks": "pcs", "budget_usd": "500", "budget_action": "stop"}, "budget_action", "Slurm terminates idle nodes"),
    ({"stacks": "pcs", "idle_minutes": "60"}, "idle_minutes", "Slurm terminates idle nodes"),
    ({"stacks": "sagemaker", "nodes": 2, "sagemaker_max_instances": 1}, "sagemaker_max_instances", "2 or more"),
    ({"stacks": "sagemaker", "sagemaker_max_runtime_hours": 673}, "sagemaker_max_runtime_hours", "up to 672"),
    *[
        ({key: value.replace("us-west-2", "us-east-1")}, key, "a resource in us-west-2, the plan's region")
        for key, value in (
            ("sagemaker_kms_key", KMS_KEY),
            ("sagemaker_image", IMAGE),
        )
    ],
]


@pytest.mark.parametrize(("key", "got", "says"), MALFORMED)
def test_malformed_value_is_refused_with_its_form(key: str, got: Any, says: str) -> None:
    problem = next(problem for problem in problems_of(**{key: got}) if problem.key == key)
    assert problem.got == got
    assert says in f"{problem.allowed}; {problem.fix}"


@pytest.mark.parametrize(("settings", "key", "says"), REFUSED)
def test_settings_that_do_not_fit_together_are_refused(settings: dict[str, Any], key: str, says: str) -> None:
    problem = the_problem(**{name: value for name, value in settings.items() if value is not None})
    assert problem.key == key
    assert says in f"{problem.allowed}; {problem.fix}"


@pytest.mark.parametrize(
    "settings",
    [
        {"nodes": 64, **BLOCK},
        {"stacks": "pcs", "ends": "5d", "ends_action": "destroy"},
        {"stacks": "pcs", "ends": "5d"},
        {"stacks": "pcs", "budget_usd": "500"},
        {"stacks": "sagemaker", "sagemaker_max_runtime_hours": 672},
    ],
)
def test_settings_within_the_limits_are_accepted(settings: dict[str, Any]) -> None:
    assert problems_of(**settings) == []


@pytest.mark.parametrize(
    "settings",
    [{"ends": "40h"}, {"budget_usd": "500", "budget_action": "stop"}, {"idle_minutes": "60"}, BLOCK],
    ids=str,
)
def test_end_budget_idleness_and_block_require_a_clock(settings: dict[str, Any]) -> None:
    assert from_settings(**settings).needs_schedule


@pytest.mark.parametrize(("name", "nearest"), [("node", "nodes"), ("zone", None)])
def test_unknown_setting_is_refused_with_the_nearest(name: str, nearest: str | None) -> None:
    problem = the_problem(**{name: "4"})
    assert (problem.key, problem.got, problem.nearest) == (name, "4", nearest)
    assert problem.fix.startswith(f"write trn:{nearest}" if nearest else "remove it")
    assert "groups cluster, pilot, jobs" in problem.allowed


@pytest.mark.parametrize(
    ("got", "nearest"),
    [("trn1.32xlarg", "trn1.32xlarge"), ("ml.trn1.32xlarge", "trn1.32xlarge"), ("p3.16xlarge", None)],
)
def test_unknown_type_is_refused_with_the_nearest(got: str, nearest: str | None) -> None:
    problem = the_problem(instance_type=got)
    assert (problem.key, problem.got, problem.nearest) == ("instance_type", got, nearest)
    assert problem.allowed.startswith("trn1.2xlarge, trn1.32xlarge")
    assert "trn:catalog" in problem.fix


def test_all_problems_are_reported_at_once() -> None:
    several = {"instance_type": "p3.16xlarge", "nodes": "four", "capacity": "spot", "vpc_id": "x", "node": "1"}
    keys = [problem.key for problem in problems_of(**several, reservation_id=RESERVATION)]
    assert sorted(keys) == ["instance_type", "node", "nodes", "reservation_id", "vpc_id"]


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"vpc_id": "x", "egress": "none", "stacks": "pcs"}, ["vpc_id"]),
        ({"vpc_id": "x", "egress": "vpc-endpoints", "stacks": "pcs"}, ["vpc_id"]),
        ({"vpc_cidr": "172.17.0.0/16", "egress": "x"}, ["vpc_cidr", "egress"]),
    ],
    ids=str,
)
def test_rule_is_checked_unless_a_setting_it_reads_is_invalid(settings: dict[str, Any], keys: list[str]) -> None:
    assert [problem.key for problem in problems_of(**settings)] == keys


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


@pytest.mark.parametrize(
    ("key", "value", "fix"),
    [
        ("nodes", "4", "pass a value of type int"),
        ("nodes", True, "pass a value of type int"),
        ("quota_check", "on", "pass a value of type bool"),
        ("vpc_cidr", "10.1.0.0/16 ", "is not a valid netmask"),
        ("vpc_cidr", ipaddress.IPv4Network("10.1.0.0/16"), "pass a value of type str"),
        ("dns_servers", ["10.0.0.2"], "pass a value of type tuple"),
        ("suppress_checks", ("nofile", "nofile"), "remove repeated values"),
        ("suppress_checks", ("nofiles",), "write nofile"),
        ("fsx_lustre", "1200", "specify"),
        ("tags", {"team": 1}, "specify each key and value as a string"),
        ("ends", " 8h", "specify a duration"),
    ],
)
def test_value_of_python_code_must_have_the_parsed_form(key: str, value: Any, fix: str) -> None:
    with pytest.raises(PlanError) as refused:
        Plan.of(**GOOD, **{key: value})
    (problem,) = refused.value.problems
    assert problem.key == key
    assert fix in problem.fix


def test_binary_script_is_refused(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_bytes(b"\xff\xfe")
    assert "cannot be read as text" in the_problem(setup_script=str(tmp_path / "setup.sh")).fix
