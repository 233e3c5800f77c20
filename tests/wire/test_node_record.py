"""Node records: readers get what a node wrote, and invalid records are reported."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_wire.node_record import CheckRecord, NodeRecord

checks = st.builds(CheckRecord, name=st.text(), expected=st.text(), found=st.text(), ok=st.booleans())
records = st.builds(
    NodeRecord,
    instance_id=st.text(),
    state=st.sampled_from(["verified", "failed"]),
    reason=st.text(),
    checks=st.lists(checks, max_size=4).map(tuple),
    time=st.text(),
).filter(lambda record: record.state == "failed" or all(check.ok for check in record.checks))

GOOD: dict[str, Any] = {"instance_id": "i-1", "state": "verified", "time": "2026-11-21T10:00:00Z"}


@given(record=records)
def test_record_is_read_back_unchanged(record: NodeRecord) -> None:
    assert NodeRecord.from_json(record.to_json()) == record


def test_reason_and_checks_are_optional() -> None:
    record = NodeRecord.from_json(json.dumps(GOOD))
    assert (record.reason, record.checks) == ("", ())


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "3", "null", '"verified"', "{}"),
        json.dumps({**GOOD, "state": "well"}),
        json.dumps({**GOOD, "checks": None}),
        json.dumps({**GOOD, "checks": [{"name": "devices"}]}),
        json.dumps({key: value for key, value in GOOD.items() if key != "time"}),
    ],
)
def test_invalid_record_is_refused_with_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"record|state"):
        NodeRecord.from_json(text)


@pytest.mark.parametrize("ok", [False, "true", 1, None])
def test_verified_record_with_a_failed_check_is_refused(ok: Any) -> None:
    check = {"name": "devices", "expected": "16", "found": "15", "ok": ok}
    with pytest.raises(ValueError, match="contradicts itself: verified, although devices failed"):
        NodeRecord.from_json(json.dumps({**GOOD, "checks": [check]}))


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["state", "time", "x"]), inner),
        max_leaves=4,
    )
)
def test_any_other_json_is_refused_with_a_reason(value: Any) -> None:
    with pytest.raises(ValueError, match=r"not a node record|state is"):
        NodeRecord.from_json(json.dumps(value))
