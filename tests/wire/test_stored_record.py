"""Readers get a record of the node for any content that it stores under its name."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_wire.formats import one_line
from trainium_wire.node_record import NodeRecord, failures, stored_record

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def verified(**changes: object) -> str:
    return json.dumps({"instance_id": "i-1", "state": "verified", "time": "2026-11-21T12:00:00Z", **changes})


def read(text: str | None) -> NodeRecord:
    return stored_record("i-1", text, NOON).record


def test_record_is_read_back_unchanged() -> None:
    assert read(verified()) == NodeRecord(instance_id="i-1", state="verified", time="2026-11-21T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<html>", "not a node record"),
        ("", "not a node record"),
        ("[" * 100_000, "nested too deeply"),
        (verified(state="fine"), "state is 'fine'"),
        (verified(instance_id="i-2"), "it is about i-2"),
        (verified(checks=[{"name": "efa", "expected": "8", "found": "7", "ok": False}]), "contradicts itself"),
        (None, "larger than 65536 bytes"),
    ],
)
def test_unusable_content_is_a_failed_record_with_reason(text: str | None, reason: str) -> None:
    record = read(text)
    assert (record.instance_id, record.state) == ("i-1", "failed")
    assert record.reason.startswith("its record cannot be used: ")
    assert reason in record.reason


@given(st.text() | st.none())
def test_any_stored_text_is_a_record_of_the_instance(text: str | None) -> None:
    record = read(text)
    assert record.instance_id == "i-1"
    assert record.state == "failed"
    assert 0 < len(record.reason) <= 600


@pytest.mark.parametrize("state", ["failed", "draining"])
def test_record_without_a_reason_gets_a_default_reason(state: str) -> None:
    assert read(verified(state=state)).reason == "no reason is reported"


@given(st.text(), st.integers(1, 50))
def test_line_from_a_node_is_printable_and_short(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert line.isprintable()
    assert len(line) <= limit


def test_reason_is_one_line() -> None:
    assert read(verified(state="failed", reason="a\n\x1b[31mb\tc")).reason == "a [31mb c"


def test_failure_time_is_the_storage_time_of_s3() -> None:
    stored = {"i-1": stored_record("i-1", verified(state="failed", time="1970-01-01T00:00:00Z"), NOON)}
    assert failures(stored) == {"i-1": NOON}


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (verified(), False),
        (verified(state="failed"), True),
        (verified(state="failed", verified=["verified", ""]), False),
        ("<html>", False),
    ],
)
def test_only_a_valid_record_says_that_a_node_failed_its_verification(text: str, failed: bool) -> None:
    assert stored_record("i-1", text, NOON).failed_verification == failed
