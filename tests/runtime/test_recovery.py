"""Which failed nodes are replaced; every caller gets the same answer."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.recovery import Recovery, plan_recovery

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def plan(failed: dict[str, float], *, group: str = "", leaving: str = "", limit: int = 2) -> Recovery:
    """The decision about failed instances.

    Args:
        failed: Hours after noon at which each instance failed.
        group: One letter for each instance of the group.
        leaving: One letter for each instance that Auto Scaling is replacing.
    """
    failures = {instance: NOON + timedelta(hours=hours) for instance, hours in failed.items()}
    return plan_recovery(failures=failures, instances=set(group), leaving=set(leaving), limit=limit)


def test_failed_node_is_replaced() -> None:
    assert plan({"a": 0}, group="ab").sentence("a") == "being replaced (1 of 2)"


def test_nothing_is_replaced_or_shown_without_recovery() -> None:
    none = plan({"a": 0}, group="a", limit=0)
    assert not none.replaces("a")
    assert none.sentence("a") == ""


def test_first_failed_nodes_are_replaced_up_to_the_limit() -> None:
    decided = plan({"a": 0, "b": 1, "c": 2}, group="abc")
    assert [decided.sentence(i) for i in "abc"] == [
        "being replaced (1 of 2)",
        "being replaced (2 of 2)",
        "not replaced: 2 of 2 replacements within 24 hours are used",
    ]


def test_leaving_nodes_count_and_are_reported_as_replaced() -> None:
    decided = plan({"a": 0, "b": 1, "c": 2}, group="abc", leaving="ab")
    assert decided.sentence("b") == "being replaced (2 of 2)"
    assert not decided.replaces("c")


def test_window_ends_after_exactly_a_day() -> None:
    assert plan({"a": 0, "b": 24}, group="b", limit=1).replaces("b")
    assert not plan({"a": 0.01, "b": 24}, group="b", limit=1).replaces("b")


def test_refused_node_stays_refused_if_a_later_one_is_replaced() -> None:
    """Otherwise the message of the failed deployment would have been wrong."""
    before = plan({"a": 0, "b": 23}, group="b", limit=1)
    after = plan({"a": 0, "b": 23, "c": 25}, group="b", limit=1)
    assert not before.replaces("b")
    assert not after.replaces("b")


def test_node_leaving_beyond_the_limit_is_reported_without_a_number() -> None:
    assert plan({"a": 0, "b": 1}, group="b", leaving="b", limit=1).sentence("b") == "being replaced"


ids = st.sampled_from("abcdefgh")
moments = st.dictionaries(ids, st.floats(0, 72), max_size=8)


@given(failed=moments, group=st.sets(ids), limit=st.integers(0, 4))
def test_replacements_per_day_never_exceed_the_limit(failed: dict[str, float], group: set[str], limit: int) -> None:
    chosen = plan(failed, group="".join(group), limit=limit).numbers
    gone = failed.keys() - group
    for instance in chosen:
        of_the_day = [o for o in {*chosen, *gone} if failed[instance] - 24 < failed[o] <= failed[instance]]
        assert len(of_the_day) <= limit


@given(failed=moments, group=st.sets(ids), limit=st.integers(0, 4))
def test_no_others_are_selected_while_replacements_are_pending(
    failed: dict[str, float], group: set[str], limit: int
) -> None:
    chosen = plan(failed, group="".join(group), limit=limit).numbers.keys()
    assert plan(failed, group="".join(group), leaving="".join(chosen), limit=limit).numbers.keys() == chosen
    assert not plan(failed, group="".join(group - chosen), limit=limit).numbers
