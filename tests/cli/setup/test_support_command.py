"""`trn support`: the contents of the archive, also when parts of AWS do not answer, and when it contains logs."""

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

SCRIPT = "#!/bin/bash\nexport WANDB_API_KEY=script-value\n"


@dataclass
class FakeSupport:
    """Returns records and logs.

    Attributes:
        refused: The calls that fail.
    """

    refused: set[str] = field(default_factory=set[str])

    def _answer(self, name: str, answer: Any) -> Any:
        if name in self.refused:
            raise UnavailableError(f"not allowed to read: the permission {name} is missing")
        return answer

    def stack_history(self, stack: str) -> Sequence[Mapping[str, Any]]:
        return self._answer("events", [{"StackName": stack, "ResourceStatusReason": "because"}])

    def function_logs(self, stack: str) -> Mapping[str, str]:
        return self._answer("logs", {f"controller-{stack}.log": "2 waiting: 1 of 2 nodes verified"})

    def node_logs(self, stack: str) -> Mapping[str, str]:
        return self._answer("s3", {"i-0aaaaaaaaaaaaaaaa.log": f"run the setup script of {stack}\n"})

    def scaling_activities(self, stack: str) -> Sequence[Mapping[str, Any]]:
        return self._answer("scaling", [{"Description": f"Launching in {stack}"}])

    def consoles(self, instance_ids: Sequence[str]) -> Mapping[str, str]:
        return self._answer("consoles", {f"{one}.txt": "booted" for one in instance_ids})


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeSupport:
    fake = FakeSupport()
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "setup.sh").write_text(SCRIPT)
    nodes = FakeNodes([LOST])

    def unanswered(*_: object, **__: object) -> None:
        raise UnavailableError("there is no stack")

    monkeypatch.setattr(support_command, "AwsSupport", lambda _region: fake)
    monkeypatch.setattr(support_command, "AwsNodes", lambda _region: nodes)
    monkeypatch.setattr(support_command, "AwsAccount", lambda _region: FakeAccount())
    monkeypatch.setattr(support_command, "_jobs", lambda *_: "{}")
    monkeypatch.setattr(support_command, "audit", unanswered)
    return fake


def files() -> dict[str, str]:
    """The files of the archive in the working directory, without the name of its folder."""
    (archive,) = Path().glob("trn-support-*.tar.gz")
    with tarfile.open(archive) as opened:
        read = {one.name: opened.extractfile(one) for one in opened}
        return {name.partition("/")[2]: stream.read().decode() for name, stream in read.items() if stream}


RECORDS = {
    "manifest.json",
    "versions.txt",
    "settings.json",
    "preflight.json",
    "stack-events/TrnClusterStack.json",
    "nodes.json",
    "jobs.json",
    "scaling-activities.json",
}
LOGS = {
    "function-logs/TrnClusterStack/controller-TrnClusterStack.log",
    "node-logs/i-0aaaaaaaaaaaaaaaa.log",
}


@pytest.mark.usefixtures("account")
def test_archive_contains_structured_records_and_no_logs() -> None:
    qualifier = ("-c", "@aws-cdk/core:bootstrapQualifier=mlteam")
    ended = run("support", *GOOD, *qualifier, "-c", "trn:setup_script=setup.sh")
    assert ended.exit_code == ExitCode.OK, ended.output
    found = files()
    assert set(found) == RECORDS
    assert "script-value" not in "".join(found.values())
    settings = json.loads(found["settings.json"])
    assert settings["instance_type"] == "trn1.32xlarge"
    assert settings["setup_script"].startswith(f"{len(SCRIPT)} bytes, SHA-256 ")
    assert "/cdk-bootstrap/mlteam/version" in found["preflight.json"]
    assert "15 of 16 Neuron devices (missing: device 7)" in found["nodes.json"]
    assert "trainium-cdk " in found["versions.txt"]


@pytest.mark.usefixtures("account")
def test_requested_logs_are_added_after_confirmation() -> None:
    ended = run("support", *GOOD, "--include-logs", stdin="y\n")
    assert ended.exit_code == ExitCode.OK, ended.output
    shown = ended.stdout.partition("may contain secrets?")[0]
    assert all(name in shown for name in LOGS)
    assert set(files()) >= LOGS


@pytest.mark.usefixtures("account")
def test_declined_logs_leave_no_archive(tmp_path: Path) -> None:
    ended = run("support", *GOOD, "--include-logs", stdin="n\n")
    assert ended.exit_code == ExitCode.NOT_READY
    assert list(tmp_path.glob("*.tar.gz")) == []


def test_unavailable_parts_are_named_and_the_rest_is_written(account: FakeSupport) -> None:
    account.refused = {"events", "logs", "s3"}
    ended = run("support", *GOOD, "--json", "--include-logs", "--yes")
    assert ended.exit_code == ExitCode.OK
    shown = json.loads(ended.stdout)
    assert set(shown["unavailable"]) == {
        "stack-events/TrnClusterStack.json",
        "function-logs/TrnClusterStack",
        "node-logs",
        "audit.json",
    }
    assert {"nodes.json", "scaling-activities.json", "preflight.json"} <= set(shown["files"])
    assert json.loads(files()["manifest.json"])["unavailable"] == shown["unavailable"]
