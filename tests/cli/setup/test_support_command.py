"""`trn support`: what is in the archive, also when half of the account says nothing, and that no secret is."""

import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cluster.test_nodes_command import LOST, FakeNodes
from tests.cli.running import GOOD, run
from tests.core.fake_account import FakeAccount
from trainium_cli.exit_codes import ExitCode
from trainium_cli.setup import support_command
from trainium_runtime.errors import UnavailableError

ACCOUNT = "210987654321"
ENVIRONMENT = {"HF_TOKEN": "environment-value", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
SCRIPT = "#!/bin/bash\nexport WANDB_API_KEY=script-value\necho $WANDB_API_KEY\n"
PLANTED = [
    *ENVIRONMENT.values(),
    "script-value",
    "AKIAIOSFODNN7EXAMPLE",
    "log-value",
    "ghp_0123456789abcdefAB",
    ACCOUNT,
]


@dataclass
class FakeSupport:
    """Says what logs hold. refused: the questions that get no answer."""

    refused: set[str] = field(default_factory=set[str])

    def _answer(self, name: str, answer: Any) -> Any:
        if name in self.refused:
            raise UnavailableError(f"not allowed to read: the permission {name} is missing for {ACCOUNT}")
        return answer

    def stack_history(self, stack: str) -> Sequence[Mapping[str, Any]]:
        reason = f"arn:aws:iam::{ACCOUNT}:role/x is not authorized; AKIAIOSFODNN7EXAMPLE"
        return self._answer("events", [{"StackName": stack, "ResourceStatusReason": reason}])

    def functions_logs(self, stack: str) -> Mapping[str, str]:
        return self._answer("logs", {f"gate-{stack}.log": "1 token=log-value\n2 waiting: 1 of 2 nodes proven"})

    def node_logs(self, stack: str) -> Mapping[str, str]:
        log = f"run the setup script of {stack}\nscript-value\nenvironment-value\n"
        return self._answer("s3", {"i-0aaaaaaaaaaaaaaaa.log": log})

    def scaling_activities(self, stack: str) -> Sequence[Mapping[str, Any]]:
        return self._answer("scaling", [{"Description": f"Launching in {stack}"}])

    def consoles(self, instance_ids: Sequence[str]) -> Mapping[str, str]:
        return self._answer("consoles", {f"{one}.txt": "clone with ghp_0123456789abcdefAB" for one in instance_ids})


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeSupport:
    fake = FakeSupport()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "setup.sh").write_text(SCRIPT)
    nodes = FakeNodes([LOST])
    monkeypatch.setattr(support_command, "AwsSupport", lambda _region: fake)
    monkeypatch.setattr(support_command, "AwsNodes", lambda _region: nodes)
    monkeypatch.setattr(support_command, "AwsAccount", lambda _region: FakeAccount())
    return fake


def files() -> dict[str, str]:
    """The archive in the working directory, without the name of its folder."""
    (archive,) = Path().glob("trn-support-*.tar.gz")
    with tarfile.open(archive) as opened:
        read = {one.name: opened.extractfile(one) for one in opened}
        return {name.partition("/")[2]: stream.read().decode() for name, stream in read.items() if stream}


SCRIPTED = (*GOOD, "-c", "trn:setup_script=setup.sh")


def test_everything_is_there_and_no_secret_in_any_file(account: FakeSupport) -> None:
    ended = run("support", *SCRIPTED)
    assert ended.exit_code == ExitCode.OK, ended.output
    found = files()
    assert {name.partition("/")[0] for name in found} == {
        "manifest.json",
        "versions.txt",
        "settings.json",
        "preflight.json",
        "stack-events",
        "function-logs",
        "nodes.json",
        "scaling-activities.json",
        "node-logs",
        "consoles",
    }
    everything = {**found, "what was printed": ended.output}
    assert [(name, secret) for name, text in everything.items() for secret in PLANTED if secret in text] == []
    assert not account.refused


def test_what_helps_is_not_masked(account: FakeSupport) -> None:
    run("support", *SCRIPTED)
    found = files()
    assert json.loads(found["settings.json"])["instance_type"] == "trn1.32xlarge"
    assert json.loads(found["settings.json"])["setup_script"].startswith(f"{len(SCRIPT)} bytes, SHA-256 ")
    assert "15 of 16 Neuron devices (missing 7)" in found["nodes.json"]
    assert "waiting: 1 of 2 nodes proven" in found["function-logs/TrnClusterStack/gate-TrnClusterStack.log"]
    assert "node program " in found["versions.txt"]
    assert [*found] == ["manifest.json", *(name for name in found if name != "manifest.json")]
    assert account


def test_what_the_account_does_not_return_is_named_and_the_rest_is_there(account: FakeSupport) -> None:
    account.refused = {"events", "logs", "s3"}
    ended = run("support", *GOOD, "--json")
    assert ended.exit_code == ExitCode.OK
    shown = json.loads(ended.stdout)
    assert set(shown["unavailable"]) == {
        "stack-events/TrnClusterStack.json",
        "function-logs/TrnClusterStack",
        "node-logs",
    }
    assert "the permission s3 is missing for <account " in shown["unavailable"]["node-logs"]
    assert {"nodes.json", "scaling-activities.json", "preflight.json"} <= set(shown["files"])
    assert json.loads(files()["manifest.json"])["unavailable"] == shown["unavailable"]


def test_settings_that_make_no_plan_are_reported_with_what_needs_no_account(account: FakeSupport) -> None:
    assert run("support", "-c", "trn:instance_type=trn9").exit_code == ExitCode.OK
    found = files()
    assert set(found) == {"manifest.json", "versions.txt", "settings.json"}
    assert "trn9" in found["settings.json"]
    assert account


def test_a_file_that_cannot_be_written_is_reported(account: FakeSupport) -> None:
    ended = run("support", *GOOD, "--output", "nowhere/archive.tar.gz")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "nowhere/archive.tar.gz: No such file or directory" in ended.stderr
    assert account
