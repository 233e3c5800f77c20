"""The GPU plan to compare with a Trainium plan."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.core.plans import EXISTING_VPC, GOOD, RESERVATION, plans
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.evidence.baseline import Baseline, BaselineError, baseline, pairs
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.setting_schema.forms import as_written

CATALOG = builtin_catalog()
REGIONS = {region for kind in CATALOG.values() for region in kind.zones}
OFFERED = {region: {name for name, kind in CATALOG.items() if region in kind.zones} for region in REGIONS}


def baseline_of(chosen: str | None = None, **settings: Any) -> Baseline:
    context = {**GOOD, **settings}
    return baseline(
        Plan.from_settings(context, Path()), context, Path(), chosen=chosen, priced=OFFERED[context["region"]]
    )


def test_every_trainium_type_is_paired_with_gpu_types() -> None:
    assert list(pairs()) == [name for name, kind in CATALOG.items() if not kind.is_gpu]
    for name, row in pairs().items():
        kinds = [CATALOG[other] for other in row["types"]]
        assert all(kind.is_gpu for kind in kinds)
        assert all((row["why"], row["source"], row["date"]))
        if CATALOG[name].neuron_devices == 1:
            assert {kind.gpus for kind in kinds} == {1}


@pytest.mark.parametrize(
    ("instance_type", "region", "expected"),
    [
        ("trn2.3xlarge", "sa-east-1", "p5.4xlarge"),
        ("trn1.32xlarge", "us-west-2", "p4d.24xlarge"),
        ("trn2.48xlarge", "us-east-2", "p5en.48xlarge"),
        ("trn1.2xlarge", "us-east-1", "g6e.xlarge"),
    ],
)
def test_most_preferred_type_is_proposed_where_it_is_offered(instance_type: str, region: str, expected: str) -> None:
    proposal = baseline_of(instance_type=instance_type, region=region)
    assert (proposal.plan.instance_type, proposal.skipped) == (expected, {})
    assert str(pairs()[instance_type]["date"]) in proposal.why


def test_type_that_the_region_lacks_is_skipped_with_the_reason() -> None:
    for name, row in pairs().items():
        for region in CATALOG[name].zones:
            offered = [other for other in row["types"] if region in CATALOG[other].zones]
            if offered and offered[0] != row["types"][0]:
                proposal = baseline_of(instance_type=name, region=region)
                assert proposal.plan.instance_type == offered[0]
                assert proposal.skipped[row["types"][0]] == f"{region} does not offer it"
                return
    pytest.fail("no region lacks a preferred type")


def test_type_without_a_known_price_is_skipped_with_the_reason() -> None:
    settings = {**GOOD, "instance_type": "trn1.32xlarge", "region": "us-west-2"}
    plan = Plan.from_settings(settings, Path())
    proposal = baseline(plan, settings, Path(), priced={"p5.48xlarge"})
    assert proposal.plan.instance_type == "p5.48xlarge"
    assert proposal.skipped["p4d.24xlarge"] == "its price in us-west-2 is unknown"
    with pytest.raises(BaselineError, match=r"p5\.48xlarge in us-west-2 is unknown: specify it in a file"):
        baseline(plan, settings, Path(), priced=())


@pytest.mark.parametrize(
    ("settings", "chosen", "says"),
    [
        ({"instance_type": "trn1.32xlarge", "region": "ap-southeast-4"}, None, "offers none of p4d.24xlarge"),
        ({"instance_type": "p5.4xlarge"}, None, "p5.4xlarge has GPUs"),
        ({}, "p5.48xlarg", "did you mean p5.48xlarge"),
        ({}, "trn2.48xlarge", "trn2.48xlarge is not a GPU type"),
        ({"instance_type": "trn2.3xlarge", "region": "sa-east-1"}, "g6e.xlarge", "sa-east-1 does not offer g6e.xlarge"),
    ],
)
def test_error_states_why_there_is_no_gpu_plan(settings: dict[str, Any], chosen: str | None, says: str) -> None:
    with pytest.raises(BaselineError, match=says):
        baseline_of(chosen, **settings)


def test_settings_that_do_not_apply_are_left_out_with_reasons() -> None:
    proposal = baseline_of(
        instance_type="trn2.48xlarge",
        region="us-east-2",
        capacity="capacity-block",
        reservation_id=RESERVATION,
        logical_neuroncore_config=1,
        cache_at_destroy="retain",
        pcs_idle_minutes=5,
        ends="5d",
        **EXISTING_VPC,
    )
    assert proposal.left_out == {
        "reservation_id": "a reservation is for one instance type",
        "logical_neuroncore_config": "GPUs have no NeuronCores",
        "cache_at_destroy": "a GPU cluster has no compile cache",
        "pcs_idle_minutes": "it is for other stacks",
    }
    assert proposal.plan.capacity == "on-demand"
    assert (proposal.plan.pilot.ends, proposal.plan.network.subnet_id) == ("5d", EXISTING_VPC["subnet_id"])
    assert any("capacity-block" in note for note in proposal.notes)
    assert any("must offer p5en.48xlarge" in note for note in proposal.notes)


def test_name_of_the_gpu_cluster_is_shortened_before_its_suffix() -> None:
    assert baseline_of().plan.cluster_name == "trn-pilot-gpu"
    assert baseline_of(cluster_name="a" * 27 + "-pilo").plan.cluster_name == "a" * 27 + "-gpu"


@given(plan=plans())
def test_every_plan_has_a_gpu_plan_or_is_refused(plan: Plan) -> None:
    given_settings = {
        key: as_written(value)
        for key in SETTINGS
        if key not in ("catalog", "prices") and (value := setting_value(plan, key)) not in (None, (), {})
        if value != SETTINGS[key].default or key in ("instance_type", "region")
    }
    try:
        proposal = baseline(plan, given_settings, Path(), priced=OFFERED[plan.region])
    except BaselineError:
        return
    assert proposal.plan.type.is_gpu
    assert proposal.plan.region == plan.region
    assert proposal.plan.cluster_name != plan.cluster_name
    assert proposal.plan.nodes in (1, plan.nodes)
