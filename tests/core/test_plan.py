"""The plan as a value: which settings make one, that it round-trips as text, and what its validation imports."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.plans import GOOD, RESERVATION, SELLABLE, from_settings, plans
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.plan import Plan
from trainium_core.plan.settings.network import NetworkSettings
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.problems import PlanError
from trainium_core.setting_schema.forms import as_written

VPC = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
plausible = st.sampled_from(
    [
        *builtin_catalog(),
        *builtin_catalog().regions,
        *("usw2-az1", "usw2-az4", "on-demand", "spot", "capacity-block", "reservation", RESERVATION, *VPC.values()),
        *("1", "2", 1, 2, 64, 10**9, "10.0.0.0/16", "efa-only", "none", "nat-gateway", "retain", "team=ml", "/ami"),
        *("rtb-0123456789abcdef0", "ami-0123456789abcdef0", "my-bucket", "pyproject.toml", "/dev/xvda"),
    ]
)


def read(settings: dict[str, Any]) -> Plan | PlanError:
    try:
        return Plan.from_settings(settings, Path())
    except PlanError as error:
        return error


@given(
    settings=st.dictionaries(st.sampled_from(list(SETTINGS)) | st.text(max_size=8), json_values | plausible, max_size=8)
)
def test_any_settings_give_a_plan_or_a_plan_error(settings: dict[str, Any]) -> None:
    outcome = read(settings)
    assert isinstance(outcome, Plan) or all(p.fix and p.allowed and str(p) for p in outcome.problems)
    assert isinstance(outcome, Plan) or outcome.problems


@pytest.mark.parametrize(("name", "region", "zone", "capacity"), SELLABLE)
def test_everything_in_the_catalogue_can_be_planned(name: str, region: str, zone: str, capacity: str) -> None:
    reservation = RESERVATION if capacity in ("capacity-block", "reservation") else None
    plan = Plan(
        instance_type=name, region=region, availability_zone_id=zone, capacity=capacity, reservation_id=reservation
    )
    assert plan.zone_id == zone


def as_text(plan: Plan) -> dict[str, str]:
    """The settings of the plan as texts, as in `-c` options. Files and settings without a value are omitted."""
    values = {key: as_written(setting_value(plan, key)) for key in SETTINGS if key not in ("catalog", "prices", "tags")}
    tags = ",".join(f"{key}={value}" for key, value in plan.tags.items())
    texts = {n: ",".join(v) if isinstance(v, tuple) else str(v) for n, v in values.items() if v is not None}
    return texts | ({"tags": tags} if tags else {})


@given(plan=plans())
def test_plan_as_text_is_read_back_unchanged(plan: Plan) -> None:
    assert Plan.from_settings(as_text(plan), Path()) == plan


@pytest.mark.parametrize("key", [key for key, setting in SETTINGS.items() if setting.default is not None])
def test_default_equals_the_value_without_the_setting(key: str) -> None:
    assert setting_value(from_settings(), key) == SETTINGS[key].default


def test_section_of_settings_is_validated_with_its_plan() -> None:
    network = NetworkSettings(vpc_id=VPC["vpc_id"], subnet_id=VPC["subnet_id"])
    assert Plan(**GOOD, network=network) == from_settings(**VPC)
    with pytest.raises(PlanError, match="trn:subnet_id: got nothing"):
        Plan(**GOOD, network=NetworkSettings(vpc_id=VPC["vpc_id"]))


def test_plan_validation_imports_no_cdk_boto3_or_jinja2() -> None:
    """Prints the time but does not check it: only imports could make a validation slow."""
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "from pathlib import Path; from trainium_core.plan import Plan\n"
        f"Plan.from_settings({GOOD!r}, Path())\n"
        "print('import and validation:', round(time.perf_counter() - start, 3), 's', file=sys.stderr)\n"
        "print(' '.join(sys.modules))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=480)
    print(run.stderr)
    assert {"aws_cdk", "boto3", "botocore", "jinja2", "rich", "click"}.isdisjoint(run.stdout.split())
    assert "trainium_core.plan.rules.cluster" in run.stdout.split()
