"""The order in which resources are created and deleted. A stack is not deleted during an update."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_local.cloudformation import stack_operations
from trainium_local.cloudformation.deletion import dependents_first
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Region
from trainium_local.cloudformation.template import Template

NAMES = [f"R{number}" for number in range(8)]


def parsed(needs: dict[str, set[str]]) -> Template:
    resources = {
        name: {"Type": "T", "Properties": {"Of": [{"Fn::Sub": f"${{{other}.Arn}}"} for other in sorted(others)]}}
        for name, others in needs.items()
    }
    return Template.parse(json.dumps({"Resources": resources}))


@given(st.permutations(NAMES), st.data())
def test_resource_comes_after_its_dependencies(names: list[str], data: st.DataObject) -> None:
    needs = {
        name: data.draw(st.sets(st.sampled_from(names[:position]))) if position else set[str]()
        for position, name in enumerate(names)
    }
    order = parsed({name: needs[name] for name in NAMES}).order
    assert sorted(order) == NAMES
    assert all(order.index(other) < order.index(name) for name, others in needs.items() for other in others)


@given(st.integers(min_value=2, max_value=len(NAMES)))
def test_dependency_cycle_of_any_length_is_refused(length: int) -> None:
    circle = {NAMES[number]: {NAMES[(number + 1) % length]} for number in range(length)}
    with pytest.raises(ValidationError, match="Circular dependency"):
        _ = parsed(circle).order


@given(st.permutations(NAMES), st.permutations(NAMES), st.data())
def test_resources_are_deleted_before_their_dependencies(
    names: list[str], listed: list[str], data: st.DataObject
) -> None:
    needs = {
        name: data.draw(st.sets(st.sampled_from(names[:position]))) if position else set[str]()
        for position, name in enumerate(names)
    }
    order = dependents_first(listed, needs)
    assert sorted(order) == NAMES
    assert all(order.index(name) < order.index(other) for name, others in needs.items() for other in others)


def test_resources_with_cyclic_references_across_templates_are_deleted() -> None:
    assert sorted(dependents_first(["A", "B"], {"A": {"B"}, "B": {"A"}})) == ["A", "B"]


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"])
def test_stack_is_not_deleted_during_update(status: str) -> None:
    region = Region("123456789012", "us-west-2")
    stack = region.new_stack("busy")
    stack.record(status)
    with pytest.raises(ValidationError, match=f"cannot be deleted while in status {status}"):
        stack_operations.delete(region, stack)
    assert stack.status == status
