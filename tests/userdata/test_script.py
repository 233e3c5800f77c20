"""The rendered script, as text."""

import dataclasses

import pytest
from jinja2 import UndefinedError

from tests.userdata.plans import PLACES, every_plan, plan_for, plan_id
from trainium_core.node_record import REPORT_URL_VARIABLE
from trainium_core.plan import Plan
from trainium_userdata import NodePlaces, node_user_data
from trainium_userdata.script import TEMPLATES

TOKENS = NodePlaces(
    region="${Token[AWS.Region.7]}",
    cache_url="s3://${Token[TOKEN.101]}/neuron-compile-cache",
    report_url="s3://${Token[TOKEN.102]}/nodes",
)


@pytest.mark.parametrize("instance_type", ["trn1.2xlarge", "trn2.48xlarge"])
def test_the_same_plan_gives_the_same_text(instance_type: str):
    first, second = (node_user_data(plan_for(instance_type, setup_script="true"), PLACES) for _ in range(2))
    assert first == second


def test_the_destination_of_the_record_stands_on_a_line_of_its_own():
    lines = node_user_data(plan_for("trn1.32xlarge"), PLACES).splitlines()
    assert lines.count(f"{REPORT_URL_VARIABLE}=s3://cluster-records/nodes") == 1


def test_tokens_stand_only_where_the_places_are_assigned():
    lines = node_user_data(plan_for("trn2.48xlarge", setup_script="true"), TOKENS).splitlines()
    assert [line for line in lines if "Token[" in line] == [
        "TRN_REGION=${Token[AWS.Region.7]}",
        "TRN_CACHE_URL=s3://${Token[TOKEN.101]}/neuron-compile-cache",
        "TRN_REPORT_URL=s3://${Token[TOKEN.102]}/nodes",
    ]


def test_the_number_of_nodes_changes_nothing_so_that_nodes_already_there_stay():
    two, four = (node_user_data(plan_for("trn1.32xlarge", nodes=n), PLACES) for n in (2, 4))
    assert two == four


@pytest.mark.parametrize("plan", every_plan(), ids=plan_id)
def test_the_script_expects_what_the_catalogue_says(plan: Plan):
    text = node_user_data(plan, PLACES)
    assert f"neuron_devices={plan.type.neuron_devices} " in text
    assert f"neuron_cores={plan.neuron_cores_per_node} " in text
    assert f"device_memory_gib={plan.type.device_memory_gib} " in text
    assert f"efa_devices={plan.type.efa_interfaces}\n" in text


def test_the_way_nodes_are_bought_does_not_change_the_script():
    texts = {node_user_data(plan_for("trn1.32xlarge", capacity=way), PLACES) for way in ("on-demand", "spot")}
    assert len(texts) == 1


def test_a_name_that_a_template_does_not_know_is_an_error():
    with pytest.raises(UndefinedError, match="no_such_name"):
        TEMPLATES.from_string("<{ no_such_name }>").render()


@pytest.mark.parametrize("place", [field.name for field in dataclasses.fields(NodePlaces)])
@pytest.mark.parametrize("value", ["", "s3://a b", "s3://a;reboot", "$(reboot)", "${HOME}", "s3://a'", "s3://a\nb"])
def test_a_place_that_bash_would_interpret_is_refused(place: str, value: str):
    with pytest.raises(ValueError, match=place):
        dataclasses.replace(PLACES, **{place: value})
