"""The record after the watch: a pure function of the verification and later findings."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainium_userdata.node.trn_node.cluster import Peers
from trainium_userdata.node.trn_node.watch import updated_record
from trainium_wire.node_record import NodeRecord

VERIFIED: dict[str, Any] = {
    "instance_id": "i-1",
    "state": "verified",
    "reason": "",
    "checks": [{"name": "nvme", "expected": "4", "found": "4", "ok": True}],
    "address": "10.42.0.11",
    "membership": "",
    "time": "2026-11-21T12:00:00Z",
}
GOOD = Peers("v1", [{"name": "peers", "expected": "1 of 1", "found": "1 of 1", "ok": True}])
BAD = Peers("v1", [{"name": "peers", "expected": "1 of 1", "found": "0 of 1", "ok": False}], "failed", "peers: 0 of 1")
SOME_BAD = Peers("v1", BAD.checks, "draining", "peers: 1 of 2")

reasons = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2)
findings = st.tuples(reasons, reasons, st.sampled_from([None, GOOD, BAD, SOME_BAD]), st.just(True))


def after(record: dict[str, Any], *findings: Any) -> tuple[str, str]:
    stood = updated_record(record, *findings)
    return stood["state"], stood["reason"]


def test_record_without_findings_is_not_changed():
    assert updated_record(VERIFIED, [], [], None, True) == VERIFIED


def test_failure_takes_precedence_over_a_notice():
    assert after(VERIFIED, ["device 3"], ["spot"], None, True) == ("failed", "device 3")


def test_all_reasons_are_reported_together():
    assert after(VERIFIED, [], ["spot", "retirement"], None, True) == ("draining", "spot; retirement")


def test_withdrawn_finding_leaves_no_trace():
    assert updated_record(updated_record(VERIFIED, [], ["spot"], None, True), [], [], None, True) == VERIFIED


def test_nothing_is_withdrawn_before_every_source_was_read():
    draining = updated_record(VERIFIED, [], ["spot"], None, True)
    assert after(draining, [], [], None, False) == ("draining", "spot")


def test_failed_verification_is_final():
    failed = {**VERIFIED, "state": "failed", "reason": "15 of 16 Neuron devices"}
    assert updated_record(failed, ["device 3"], ["spot"], GOOD, True) == failed


def test_peers_that_answer_later_make_the_node_verified_again():
    stood = updated_record(updated_record(VERIFIED, [], [], BAD, True), [], [], GOOD, True)
    assert (stood["state"], stood["checks"]) == ("verified", VERIFIED["checks"] + GOOD.checks)


@given(findings)
def test_core_reads_every_resulting_record(found: tuple[Any, ...]):
    assert NodeRecord.from_json(json.dumps(updated_record(VERIFIED, *found)))


@given(findings, reasons, reasons, st.sampled_from([GOOD, BAD, SOME_BAD]))
def test_only_the_last_findings_count(first: Any, failures: list[str], drains: list[str], peers: Peers):
    last = (failures, drains, peers, True)
    assert updated_record(updated_record(VERIFIED, *first), *last) == updated_record(VERIFIED, *last)
