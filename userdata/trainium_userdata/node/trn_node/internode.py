"""The all-reduce test over the cores of all nodes: groups of nodes, and the judgement of their outcomes.

All nodes compute together. If the result is not correct, each node computes alone, which shows whether the test works
at all, and then in pairs with different nodes, which identifies a faulty one. Wrong numbers fail a node, unless the
time limit is reached first. Without a result, a node fails only if the test works on other nodes, because the test may
be at fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

NAME = "internode-collectives"
"""Name of the check in a node's record with the outcome of the test."""
READY, RIGHT, WRONG, NO_RESULT, UNABLE = "ready", "right", "wrong", "trouble", "unable"
ASSEMBLY, TOGETHER, ALONE = 0, 1, 2
PAIR_ROUNDS = 3
"""Two rounds identify a faulty node. With an odd number of nodes, one has no partner in each round."""
_LONGEST = 1000
NAMED = 3
"""The maximum number of nodes or outcomes in a sentence."""


class RoundOutcome(NamedTuple):
    """The outcome of one node in a step.

    Attributes:
        state: READY or UNABLE in the first step, then RIGHT, WRONG or NO_RESULT.
        detail: One line on the problem.
        bandwidth: In GB/s: of READY, that within the node; of RIGHT, that of the group.
    """

    state: str
    detail: str = ""
    bandwidth: float | None = None

    @classmethod
    def from_json(cls, raw: Any) -> RoundOutcome:
        """Raises LookupError, TypeError or ValueError if it is invalid."""
        bandwidth = raw["bandwidth"]
        return cls(str(raw["state"]), str(raw["detail"])[:300], None if bandwidth is None else float(bandwidth))


History = Sequence[Mapping[str, RoundOutcome]]
"""The outcomes of each step by instance ID, without nodes that have none."""


class Verdict(NamedTuple):
    """The result of the test.

    Attributes:
        found: One sentence for all nodes.
        tested: Whether an all-reduce over all nodes was correct.
        faults: A sentence for each faulty node.
        wrong: The faulty nodes that took part in computations with wrong numbers.
        warnings: A sentence for each node with a warning.
    """

    found: str
    tested: bool = False
    faults: Mapping[str, str] = {}
    wrong: Sequence[str] = ()
    warnings: Mapping[str, str] = {}

    @classmethod
    def from_json(cls, raw: Any) -> Verdict:
        """Parse a judgement, which any node may have written. Raises LookupError, TypeError or AttributeError."""

        def sentences(texts: Any) -> dict[str, str]:
            return {str(node)[:_LONGEST]: str(text)[:_LONGEST] for node, text in texts.items()}

        return cls(
            str(raw["found"])[:_LONGEST],
            tested=raw["tested"] is True,
            faults=sentences(raw["faults"]),
            wrong=[str(node)[:_LONGEST] for node in raw["wrong"]],
            warnings=sentences(raw["warnings"]),
        )


def groups(nodes: Sequence[str], step: int) -> list[list[str]]:
    """The groups of a step. The first node of each group is its rank 0.

    Args:
        nodes: All nodes, in the order of ranks.
        step: Number of the step.
    """
    if step in (ASSEMBLY, ALONE):
        return [[node] for node in nodes]
    return [list(nodes)] if step == TOGETHER else pairs(nodes, step - ALONE - 1)


def pairs(nodes: Sequence[str], number: int) -> list[list[str]]:
    """The pairs of a round of a round-robin tournament. Rounds are numbered from 0."""
    first, *others = [*nodes, *[""] * (len(nodes) % 2)]
    turn = number % len(others)
    seats = [first, *others[turn:], *others[:turn]]
    half = len(seats) // 2

    return [[left, right] for left, right in zip(seats[:half], reversed(seats[half:])) if left and right]


def last_step(nodes: Sequence[str]) -> int:
    return ALONE + min(PAIR_ROUNDS, len(nodes) - 1 + len(nodes) % 2)


def judge(nodes: Sequence[str], history: History, *, slow: float) -> Verdict | None:
    """The judgement of the steps so far; None if another step is needed.

    Args:
        nodes: All nodes, in the order of ranks.
        history: The outcomes of the steps so far.
        slow: The fraction of the nodes' median bandwidth below which a node gets a warning.
    """
    if not history:
        return None
    assembled = history[ASSEMBLY]
    if absent := [node for node in nodes if node not in assembled]:
        return _untested(f"no outcome yet from {_listed(absent)}")
    if unable := [node for node in nodes if assembled[node].state != READY]:
        return _untested(f"{assembled[unable[0]].detail} on {_listed(unable)}")
    if len(history) == TOGETHER:
        return None
    together = history[TOGETHER]
    if all(_state(together, node) == RIGHT for node in nodes):
        measured = together[nodes[0]].bandwidth
        speed = f", {measured:.1f} GB/s at 256 MiB" if measured is not None else ""
        found = f"correct over {len(nodes)} nodes{speed}"
        return Verdict(found, tested=True, warnings=slow_nodes(assembled, slow))
    if len(history) == ALONE:
        return None
    alone = history[ALONE]
    has_wrong_sums = any(_state(together, node) == WRONG for node in nodes)
    if not has_wrong_sums and all(_state(alone, node) not in (RIGHT, WRONG) for node in nodes):
        return _untested(f"the test works on no node alone ({_first_detail(alone)})")
    return _blame(nodes, history) if len(history) > last_step(nodes) else None


def slow_nodes(assembled: Mapping[str, RoundOutcome], slow: float) -> dict[str, str]:
    """A sentence for each node with a bandwidth far below that of the others."""
    measured = {node: outcome.bandwidth for node, outcome in assembled.items() if outcome.bandwidth is not None}
    if len(measured) < 2:
        return {}
    typical = median(measured.values())
    raw = "{:.1f} GB/s within the node at 256 MiB, where the median of {} nodes is {:.1f} GB/s"
    return {
        node: raw.format(bandwidth, len(measured), typical)
        for node, bandwidth in measured.items()
        if bandwidth < slow * typical
    }


def _blame(nodes: Sequence[str], history: History) -> Verdict:
    alone, together = history[ALONE], history[TOGETHER]
    met: dict[str, dict[str, bool]] = {node: {} for node in nodes}
    in_wrong_pairs: set[str] = set()
    for step in range(ALONE + 1, len(history)):
        for pair in groups(nodes, step):
            states = [_state(history[step], node) for node in pair]
            if WRONG in states:
                in_wrong_pairs.update(pair)
            if all(states):
                for node, other in (pair, reversed(pair)):
                    met[node][other] = states == [RIGHT, RIGHT]
    faults = {n: f"wrong sums over its own cores: {alone[n].detail}" for n in nodes if _state(alone, n) == WRONG}
    wrong = [*faults]
    for node in nodes:
        others = met[node]
        others_succeed = all(any(met[other].values()) for other in others)
        if node in faults or _state(alone, node) != RIGHT or len(others) < 2 or any(others.values()):
            continue
        if others_succeed:
            partners = f"{_listed([*others])}, which have one with other nodes"
            faults[node] = f"no correct result with {partners}: {_detail(node, history)}"
            wrong += [node] if node in in_wrong_pairs else []
    if faults:
        return Verdict(f"not correct because of {_listed([*faults])}", faults=faults, wrong=wrong)
    seen_wrong = in_wrong_pairs or ({*nodes} if any(_state(together, node) == WRONG for node in nodes) else set())
    names_of_all = "both nodes" if len(nodes) == 2 else f"all {len(nodes)} nodes"
    doubt = "which node is at fault is unknown"
    if seen_wrong:
        sentence = f"wrong sums over {names_of_all}: {_first_detail(together)}; {doubt}"
        return Verdict(sentence, faults=dict.fromkeys(sorted(seen_wrong), sentence), wrong=sorted(seen_wrong))
    parted = [
        f"{node} and {other}" for node in nodes for other, right in met[node].items() if node < other and not right
    ]
    shown = f"; pairs without a correct result: {_listed(parted)}" if parted else ""
    return Verdict(f"no result over {names_of_all}: {_first_detail(together)}{shown}; {doubt}")


def _untested(why: str) -> Verdict:
    return Verdict(f"not tested: {why}")


def _state(outcomes: Mapping[str, RoundOutcome], node: str) -> str:
    return outcomes[node].state if node in outcomes else ""


def _detail(node: str, history: History) -> str:
    steps = [outcomes[node] for outcomes in history[ALONE + 1 :] if node in outcomes]
    return next((outcome.detail for outcome in steps if outcome.detail), "no result")


def _first_detail(outcomes: Mapping[str, RoundOutcome]) -> str:
    worst = sorted(outcomes.values(), key=lambda outcome: outcome.state != WRONG)
    return next((outcome.detail for outcome in worst if outcome.detail), "no node gave a result")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:NAMED])}{' and others' if len(names) > NAMED else ''}"
