"""Whether a cluster is in use, from its nodes' reports."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.usage import LastJob, cluster_usage
from trainium_wire.usage import NodeUsage

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
INSTANCES = ["i-1", "i-2"]


def idle(minutes: float, *, written: float = 1) -> NodeUsage:
    """The report of a node that has been unused for some minutes. It was written `written` minutes ago."""
    return NodeUsage(
        state="idle", at=NOON - timedelta(minutes=written), idle=timedelta(minutes=minutes) - timedelta(minutes=written)
    )


def test_cluster_is_idle_since_its_last_node_is() -> None:
    found = cluster_usage(INSTANCES, {"i-1": idle(90), "i-2": idle(40)}, None, now=NOON)
    assert (found.state, found.idle_since) == ("idle", NOON - timedelta(minutes=40))
    assert found.why == "no job and no NeuronCore in use since 2026-11-21T11:20Z"


@pytest.mark.parametrize(
    ("second", "state", "why"),
    [
        (NodeUsage(state="in-use", at=NOON, detail="python (7)"), "in-use", "i-2: python (7)"),
        (NodeUsage(state="unknown", at=NOON, detail="no driver"), "unknown", "i-2: no driver"),
        (None, "unknown", "i-2: has not reported whether it is in use"),
        (idle(90, written=16), "unknown", "i-2: last reported its use at 2026-11-21T11:44Z"),
        (idle(90, written=-16), "unknown", "i-2: last reported its use at 2026-11-21T12:16Z"),
    ],
    ids=["used", "unknown", "silent", "old", "from the future"],
)
def test_one_used_or_unknown_node_keeps_all(second: NodeUsage | None, state: str, why: str) -> None:
    usages = {"i-1": idle(90), **({"i-2": second} if second else {})}
    found = cluster_usage(INSTANCES, usages, None, now=NOON)
    assert (found.state, found.why, found.idle_since) == (state, why, None)


def test_unfinished_job_is_use_and_idleness_begins_at_its_end() -> None:
    usages = {name: idle(90) for name in INSTANCES}
    during_job = cluster_usage(INSTANCES, usages, LastJob(job_id="train-1", ended=None), now=NOON)
    assert (during_job.state, during_job.why) == ("in-use", "train-1 has not ended")
    ended = NOON - timedelta(minutes=5)
    assert cluster_usage(INSTANCES, usages, LastJob(job_id="train-1", ended=ended), now=NOON).idle_since == ended


def test_cluster_without_nodes_is_not_idle() -> None:
    assert cluster_usage([], {}, None, now=NOON).idle_since is None


@given(
    at=st.one_of(st.text(max_size=30), st.datetimes().map(str)),
    seconds=st.one_of(st.floats().map(str), st.integers().map(str), st.just("null")),
)
def test_any_usage_report_is_parsed_or_refused(at: str, seconds: str) -> None:
    try:
        read = NodeUsage.from_json(f'{{"state": "idle", "at": {json.dumps(at)}, "idle_seconds": {seconds}}}')
    except ValueError:
        return
    assert cluster_usage(["i-1"], {"i-1": read}, None, now=NOON).state in ("idle", "unknown")


@pytest.mark.parametrize("text", ["", "[]", '{"state": "asleep", "at": "", "idle_seconds": 0}', '{"state": "idle"}'])
def test_malformed_usage_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        NodeUsage.from_json(text)
