"""The demo's proof: only an unchanged account is accepted, and the counts of resources are shown."""

from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.demo.inventory import KINDS, OBJECTS, Inventory
from tools.demo.proof import AccountChangedError, refuse_unless_equal, show_counts
from trainium_cli.terminal import Screen

NAMES = [*(kind.name for kind in KINDS), OBJECTS]


def inventory(**ids: set[str]) -> Inventory:
    """An inventory with only these IDs, of VPCs and objects."""
    by_name: Mapping[str, set[str]] = {"VPCs": ids.get("vpcs", set()), OBJECTS: ids.get("objects", set())}
    return {name: frozenset(by_name.get(name, set())) for name in NAMES}


def shown(moments: Mapping[str, Inventory]) -> str:
    with redirect_stdout(StringIO()) as output:
        show_counts(Screen(width=120, has_colours=False), moments)
    return output.getvalue()


inventories = st.fixed_dictionaries({name: st.frozensets(st.sampled_from("abc")) for name in NAMES})


@given(before=inventories, after=inventories)
def test_only_equal_accounts_are_accepted(before: Inventory, after: Inventory) -> None:
    if before == after:
        assert refuse_unless_equal(before, after, uploads="cdk") == 0
    else:
        with pytest.raises(AccountChangedError):
            refuse_unless_equal(before, after, uploads="cdk")


def test_uploads_of_the_cdk_may_stay_and_are_counted() -> None:
    assert refuse_unless_equal(inventory(), inventory(objects={"cdk/a", "cdk/b"}), uploads="cdk") == 2


def test_kinds_without_resources_are_named_without_a_row() -> None:
    text = shown({"before": inventory(), "after": inventory(vpcs={"vpc-1"})})
    assert "NAT gateways" in text.partition("None at any time: ")[2]
    assert "VPCs" not in text.partition("None at any time: ")[2]
