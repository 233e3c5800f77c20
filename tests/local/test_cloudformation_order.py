"""The order of resources, whatever they name of each other."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.template import Template

NAMES = [f"R{number}" for number in range(8)]


def parsed(needs: dict[str, set[str]]) -> Template:
    resources = {
        name: {"Type": "T", "Properties": {"Of": [{"Fn::Sub": f"${{{other}.Arn}}"} for other in sorted(others)]}}
        for name, others in needs.items()
    }
    return Template.parse(json.dumps({"Resources": resources}))


@given(st.permutations(NAMES), st.data())
def test_each_resource_stands_after_all_that_it_names(names: list[str], data: st.DataObject) -> None:
    needs = {
        name: data.draw(st.sets(st.sampled_from(names[:position]))) if position else set[str]()
        for position, name in enumerate(names)
    }
    order = parsed({name: needs[name] for name in NAMES}).order
    assert sorted(order) == NAMES
    assert all(order.index(other) < order.index(name) for name, others in needs.items() for other in others)


@given(st.integers(min_value=2, max_value=len(NAMES)))
def test_a_circle_of_any_length_is_refused(length: int) -> None:
    circle = {NAMES[number]: {NAMES[(number + 1) % length]} for number in range(length)}
    with pytest.raises(ValidationError, match="Circular dependency"):
        _ = parsed(circle).order
