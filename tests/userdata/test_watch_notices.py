"""Notices of AWS, in the formats of the EC2 user guide."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_userdata.node.trn_node import notices

RETIREMENT = {
    "NotBefore": "21 Jan 2027 09:00:43 GMT",
    "Code": "instance-retirement",
    "Description": "The instance is running on degraded hardware",
    "EventId": "instance-event-0d59937288b749b32",
    "NotAfter": "21 Jan 2027 09:17:23 GMT",
    "State": "active",
}


def test_spot_interruption_has_action_and_time():
    [notice] = notices.parse(notices.SPOT, '{"action": "terminate", "time": "2026-11-21T12:02:00Z"}')
    assert (notice.kind, notice.reason) == ("spot", "EC2 reclaims this Spot Instance: terminate")
    assert notices.iso(notice.at) == "2026-11-21T12:02:00Z"


def test_retirement_has_reason_and_time():
    [notice] = notices.parse(notices.MAINTENANCE, json.dumps([RETIREMENT]))
    assert notice.kind == "instance-retirement"
    assert "The instance is running on degraded hardware" in notice.reason
    assert notices.iso(notice.at) == "2027-01-21T09:00:43Z"


@pytest.mark.parametrize("state", ["completed", "canceled"])
def test_completed_maintenance_gives_no_notice(state: str):
    assert notices.parse(notices.MAINTENANCE, json.dumps([{**RETIREMENT, "State": state}])) == []


@pytest.mark.parametrize("state", ["InService", "Standby", "Detached", "Warmed:Stopped"])
def test_other_target_state_of_auto_scaling_gives_no_notice(state: str):
    assert notices.parse(notices.LIFECYCLE, state) == []


@pytest.mark.parametrize("state", ["Terminated", "Warmed:Terminated"])
def test_termination_by_auto_scaling_may_come_at_any_moment(state: str):
    [notice] = notices.parse(notices.LIFECYCLE, state)
    assert (notice.kind, notices.iso(notice.at)) == ("terminated", "")


@pytest.mark.parametrize(
    "text",
    ["2026-11-21T12:02:00Z", "2026-11-21T12:02:00.000Z", "2026-11-21T12:02:00+00:00", "21 Nov 2026 12:02:00 GMT"],
)
def test_time_is_read_in_every_format_of_aws(text: str):
    assert notices.iso(notices.timestamp(text)) == "2026-11-21T12:02:00Z"


@given(st.text())
def test_unreadable_time_counts_as_any_moment(text: str):
    assert notices.timestamp("noon, " + text) == 0


@given(st.sampled_from(list(notices.SECONDS)), st.text())
def test_malformed_answer_is_an_expected_error(path: str, text: str):
    with contextlib.suppress(ValueError, LookupError, TypeError):
        assert isinstance(notices.parse(path, text), list)
