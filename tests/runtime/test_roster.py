"""The roster: what decides its version, and what can be read as one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.roster import Notice, Roster

NOTICE = Notice(kind="capacity-block-end", at="2026-11-21T11:00:00Z", reason="ends")

addresses = st.dictionaries(st.text(min_size=1), st.text(), max_size=4)


def test_the_members_are_sorted_by_id_so_that_all_agree_on_rank_0() -> None:
    roster = Roster.of({"i-b": "10.0.0.1", "i-a": "10.0.0.2"})
    assert [member.instance_id for member in roster.members] == ["i-a", "i-b"]


@given(addresses, addresses)
def test_two_rosters_share_a_version_only_if_they_share_their_members(one: dict[str, str], two: dict[str, str]) -> None:
    assert (Roster.of(one).version == Roster.of(two).version) == (one == two)


def test_a_notice_changes_no_version() -> None:
    assert Roster.of({"i-a": "10.0.0.1"}, (NOTICE,)).version == Roster.of({"i-a": "10.0.0.1"}).version


def test_a_roster_without_members_has_no_version() -> None:
    assert Roster(notices=(NOTICE,)).version == ""


@given(addresses)
def test_a_roster_can_be_read_back(members: dict[str, str]) -> None:
    roster = Roster.of(members, (NOTICE,))
    assert Roster.from_json(roster.to_json()) == roster


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": [1]}', '{"nodes": [{"instance_id": "i-1"}]}', "null"])
def test_what_is_no_roster_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="not a roster"):
        Roster.from_json(text)
