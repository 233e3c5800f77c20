"""The groups of the test over all nodes, and the nodes that fail: a pure function of outcomes."""

from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_userdata.node.trn_node import internode
from trainium_userdata.node.trn_node.internode import (
    ALONE,
    ASSEMBLY,
    NO_RESULT,
    READY,
    RIGHT,
    TOGETHER,
    UNABLE,
    WRONG,
    RoundOutcome,
    Verdict,
    groups,
    judge,
)

SLOW = 0.8


def names(count: int) -> list[str]:
    return [f"i-{number}" for number in range(count)]


def play(nodes: Sequence[str], outcome: Callable[[str, Sequence[str], int], RoundOutcome | None]) -> Verdict:
    """Give each node its outcome by node, group and step until there is a judgement."""
    history: list[dict[str, RoundOutcome]] = []
    while True:
        found = judge(nodes, history, slow=SLOW)
        if found:
            return found
        shown = {node: outcome(node, group, len(history)) for group in groups(nodes, len(history)) for node in group}
        history.append({node: result for node, result in shown.items() if result})


def odd(faulty: str, state: str = NO_RESULT) -> Callable[[str, Sequence[str], int], RoundOutcome]:
    """All nodes in a group with the faulty node have this state."""

    def outcome(_node: str, group: Sequence[str], step: int) -> RoundOutcome:
        if step == ASSEMBLY:
            return RoundOutcome(READY)
        return (
            RoundOutcome(state, "it hangs")
            if faulty in group and len(group) > 1
            else RoundOutcome(RIGHT, bandwidth=88.0)
        )

    return outcome


def test_nodes_with_correct_common_sums_need_no_further_test():
    steps: list[int] = []

    def outcome(_node: str, _group: Sequence[str], step: int) -> RoundOutcome:
        steps.append(step)
        return RoundOutcome(READY) if step == ASSEMBLY else RoundOutcome(RIGHT, bandwidth=88.04)

    found = play(names(3), outcome)
    assert found == Verdict("correct over 3 nodes, 88.0 GB/s at 256 MiB", tested=True)
    assert max(steps) == TOGETHER


@given(st.integers(3, 12), st.data(), st.sampled_from([NO_RESULT, WRONG]))
def test_single_faulty_node_is_found_among_any_number(count: int, data: st.DataObject, state: str):
    nodes = names(count)
    faulty = data.draw(st.sampled_from(nodes))
    found = play(nodes, odd(faulty, state))
    assert [*found.faults] == [faulty]
    assert "no correct result with" in found.faults[faulty]
    assert [*found.wrong] == ([faulty] if state == WRONG else [])


@given(st.integers(2, 12))
def test_pairs_are_unique_and_disjoint(count: int):
    rounds = [internode.pairs(names(count), number) for number in range(internode.last_step(names(count)) - ALONE)]
    for pairs in rounds:
        assert len({node for pair in pairs for node in pair}) == 2 * len(pairs) >= count - 1
    for one, other in combinations(rounds, 2):
        assert not {frozenset(pair) for pair in one} & {frozenset(pair) for pair in other}


def test_two_nodes_without_a_result_do_not_fail():
    found = play(names(2), odd("i-1"))
    assert not found.faults
    assert not found.tested
    assert found.found == (
        "no result over both nodes: it hangs; pairs without a correct result: i-0 and i-1; "
        "which node is at fault is unknown"
    )


def test_two_nodes_with_wrong_sums_both_fail():
    found = play(names(2), odd("i-1", WRONG))
    assert [*found.faults] == [*found.wrong] == ["i-0", "i-1"]
    assert found.found == "wrong sums over both nodes: it hangs; which node is at fault is unknown"


def test_wrong_sums_without_a_faulty_pair_fail_all_nodes():
    def outcome(_node: str, group: Sequence[str], step: int) -> RoundOutcome:
        return (
            RoundOutcome(READY)
            if step == ASSEMBLY
            else RoundOutcome(WRONG, "3 is not 4")
            if len(group) > 2
            else RoundOutcome(RIGHT)
        )

    assert [*play(names(4), outcome).faults] == names(4)


def test_wrong_sums_of_a_single_node_fail_only_this_node():
    def outcome(node: str, group: Sequence[str], step: int) -> RoundOutcome:
        wrong = "i-2" in group and (node == "i-2" or len(group) > 1)
        return (
            RoundOutcome(READY)
            if step == ASSEMBLY
            else RoundOutcome(WRONG, "3 is not 4")
            if wrong
            else RoundOutcome(RIGHT)
        )

    found = play(names(4), outcome)
    assert found.faults == {"i-2": "wrong sums over its own cores: 3 is not 4"}


def test_failure_on_every_single_node_fails_no_node():
    found = play(
        names(4), lambda _node, _group, step: RoundOutcome(NO_RESULT, "no module") if step else RoundOutcome(READY)
    )
    assert found == Verdict("not tested: the test works on no node alone (no module)")


def test_wrong_sums_fail_all_nodes_if_none_computes_alone():
    def outcome(_node: str, _group: Sequence[str], step: int) -> RoundOutcome:
        common = RoundOutcome(WRONG, "3 is not 4") if step == TOGETHER else RoundOutcome(NO_RESULT, "no module")
        return common if step else RoundOutcome(READY)

    assert [*play(names(3), outcome).wrong] == names(3)


def test_node_that_cannot_run_the_test_is_not_blamed_for_pairs():
    def outcome(_node: str, group: Sequence[str], step: int) -> RoundOutcome:
        if step == ASSEMBLY:
            return RoundOutcome(READY)
        return RoundOutcome(NO_RESULT, "no module") if "i-1" in group else RoundOutcome(RIGHT)

    found = play(names(4), outcome)
    assert not found.faults
    assert not found.tested


def test_nothing_is_tested_without_all_nodes():
    found = play(names(3), lambda node, _group, _step: RoundOutcome(READY) if node != "i-1" else None)
    assert found == Verdict("not tested: no outcome yet from i-1")


@given(st.integers(2, 8), st.data())
def test_missing_outcomes_fail_no_node(count: int, data: st.DataObject):
    nodes = names(count)
    silent = data.draw(st.sampled_from(nodes))

    def outcome(node: str, group: Sequence[str], step: int) -> RoundOutcome | None:
        if step == ASSEMBLY:
            return RoundOutcome(READY)
        alone = len(group) == 1
        return (
            None
            if node == silent
            else RoundOutcome(RIGHT)
            if alone or silent not in group
            else RoundOutcome(NO_RESULT, "late")
        )

    assert not play(nodes, outcome).faults


@pytest.mark.parametrize(("bandwidths", "slow"), [((90, 91, 60), ["i-2"]), ((90, 91, 75), []), ((90,), [])])
def test_much_slower_node_is_a_warning(bandwidths: Sequence[float], slow: list[str]):
    assembled = {f"i-{n}": RoundOutcome(READY, bandwidth=bandwidth) for n, bandwidth in enumerate(bandwidths)}
    assert [*internode.slow_nodes(assembled, SLOW)] == slow


def test_nothing_is_tested_while_a_node_computes():
    busy = RoundOutcome(UNABLE, "NeuronCores are in use by python train.py (42)")
    found = play(names(3), lambda node, _group, _step: busy if node == "i-2" else RoundOutcome(READY))
    assert found == Verdict("not tested: NeuronCores are in use by python train.py (42) on i-2")
