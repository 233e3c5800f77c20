"""The membership: its version, and which data is a valid membership."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_wire.membership import Membership, Notice

NOTICE = Notice(kind="capacity-block-end", at="2026-11-21T11:00:00Z", reason="ends")

addresses = st.dictionaries(st.text(min_size=1), st.text(), max_size=4)


def test_members_are_sorted_by_id_so_that_all_agree_on_rank_0() -> None:
    membership = Membership.of({"i-b": "10.0.0.1", "i-a": "10.0.0.2"})
    assert [member.instance_id for member in membership.members] == ["i-a", "i-b"]


@given(addresses, addresses)
def test_memberships_share_a_version_only_with_the_same_members(one: dict[str, str], two: dict[str, str]) -> None:
    assert (Membership.of(one).version == Membership.of(two).version) == (one == two)


def test_notice_does_not_change_the_version() -> None:
    assert Membership.of({"i-a": "10.0.0.1"}, (NOTICE,)).version == Membership.of({"i-a": "10.0.0.1"}).version


def test_membership_without_members_has_no_version() -> None:
    assert Membership(notices=(NOTICE,)).version == ""


@given(addresses)
def test_membership_is_read_back_unchanged(members: dict[str, str]) -> None:
    membership = Membership.of(members, (NOTICE,))
    assert Membership.from_json(membership.to_json()) == membership


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": [1]}', '{"nodes": [{"instance_id": "i-1"}]}', "null"])
def test_invalid_membership_is_refused_with_reason(text: str) -> None:
    with pytest.raises(ValueError, match="not a membership"):
        Membership.from_json(text)
