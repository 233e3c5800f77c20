"""Real AWS error messages are recognised by `trn explain`, the advice after a deployment, and the fleet verdict."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_deployment_failure import failed_with
from trainium_core.explanations.known_errors import known_error
from trainium_runtime.fleet_verdict import FleetView, fleet_verdict
from trainium_runtime.recovery import Recovery

MESSAGES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("aws_error_messages.toml").read_text())[
    "message"
]
LAUNCHES = [message for message in MESSAGES if "deployment" in message]


def thread(message: dict[str, Any]) -> str:
    return message["thread"].removeprefix("https://github.com/")


@pytest.mark.parametrize("message", MESSAGES, ids=thread)
def test_explain_matches_aws_error_messages(message: dict[str, Any]) -> None:
    found = known_error(message["text"])
    assert found is not None
    assert found.name == message["name"]


@pytest.mark.parametrize("message", MESSAGES, ids=thread)
def test_deployment_advice_matches_aws_messages(message: dict[str, Any]) -> None:
    readiness = f"after 50 minutes: 0 of 2 nodes verified, 0 launched; last failed launch: {message['text']}"
    reason = readiness if "deployment" in message else message["text"]
    assert f"`{message['command']}" in failed_with(reason).advice


@pytest.mark.parametrize("message", LAUNCHES, ids=thread)
def test_gate_fails_or_waits_by_launch_error(message: dict[str, Any]) -> None:
    failed = FleetView(nodes=2, instances=(), records={}, recovery=Recovery(limit=0), failed_launches=[message["text"]])
    assert fleet_verdict(failed).state == {"fails": "failed", "waits": "waiting"}[message["deployment"]]
