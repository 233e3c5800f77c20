"""`trn up`: what it refuses before anything is billed, and when --down keeps the cluster. tests/deploy runs it."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.running import run
from tests.core.aws_stubs import stack_record
from trainium_cli.cluster import up_command
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_cli.jobs.job_files import fetch_results
from trainium_core.clusters.cluster import ClusterStack
from trainium_core.plan import Plan

PLAN = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2"}


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print('hello')\n")


def write_plan(context: object) -> None:
    Path("cdk.json").write_text(json.dumps({"app": "none", "context": context}))


@pytest.mark.parametrize(
    ("context", "words", "message"),
    [
        (None, ("trian.py",), "trian.py does not exist"),
        (None, ("train.py", "--type", "trn1.32xl"), "nearest: trn1.32xlarge"),
        (PLAN, ("train.py", "--region", "us-east-1"), "change trn:region in cdk.json, or pass -c trn:region=us-east-1"),
        ({"@aws-cdk/core:x": True}, ("train.py",), "cdk.json is that of another app"),
        (PLAN, ("train.py", "--nodes", "3"), "nodes: got 3"),
    ],
)
def test_mistakes_deploy_and_write_nothing(context: object, words: Sequence[str], message: str) -> None:
    if context is not None:
        write_plan(context)
    before = sorted(Path().iterdir())
    ended = run("up", *words, "--yes")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert message in " ".join(ended.output.split())
    assert sorted(Path().iterdir()) == before


def test_without_a_terminal_it_needs_yes() -> None:
    assert "pass --yes" in run("up", "train.py").stderr


@pytest.mark.parametrize(
    ("code", "warning"),
    [("import torch\ntorch.zeros(1).cuda()\n", "warning: needs edits: "), ("print(1)\n", "")],
)
def test_code_that_needs_edits_is_named_before_the_deployment(
    monkeypatch: pytest.MonkeyPatch, code: str, warning: str
) -> None:
    write_plan(PLAN)
    Path("train.py").write_text(code)
    monkeypatch.setattr(up_command, "_deploy", lambda *_, **__: ExitCode.NOT_READY)
    monkeypatch.setattr(Invocation, "reaches_aws", lambda *_: True)
    monkeypatch.setattr(up_command, "_prepare", lambda *_: (None, None, None))
    monkeypatch.setattr(up_command, "report_source", lambda *_: None)
    ended = run("up", "train.py", "--yes")
    assert ended.exit_code == ExitCode.NOT_READY, ended.output
    assert ("`trn assess .` shows the places." in ended.stderr) == bool(warning)
    assert warning in ended.stderr


CLUSTER = {"cluster_name": "trn-pilot", "instance_type": "trn1.32xlarge", "nodes": 2, "region": "us-west-2"}
DEPLOYED, WOKEN, RUNNING = "deployed", "woken", "running"


@pytest.mark.parametrize(
    ("recorded", "status", "asleep", "then"),
    [
        ({}, "CREATE_COMPLETE", False, RUNNING),
        ({"tags": "team=ml"}, "CREATE_COMPLETE", False, RUNNING),  # SageMaker's records have it
        ({}, "UPDATE_COMPLETE", True, WOKEN),
        ({"nodes": 1}, "CREATE_COMPLETE", False, DEPLOYED),
        ({}, "CREATE_IN_PROGRESS", False, DEPLOYED),
        (None, "CREATE_COMPLETE", False, DEPLOYED),
    ],
    ids=["as planned", "with tags", "asleep", "other settings", "in progress", "no record"],
)
def test_cluster_as_planned_is_not_deployed_again(
    monkeypatch: pytest.MonkeyPatch, recorded: dict[str, Any] | None, status: str, asleep: bool, then: str
) -> None:
    settings = {"instance_type": "trn1.32xlarge", "nodes": 2} | (recorded or {})
    records = [] if recorded is None else [stack_record(settings=settings)]
    stack = ClusterStack(name="TrnClusterStack", cluster="trn-pilot", status=status, engine="cluster", asleep=asleep)

    class Account:
        def __init__(self, *_: object, **__: object) -> None: ...

        def records(self, *, again: bool = False) -> Any:  # noqa: ARG002
            return SimpleNamespace(readable=records)

        def cluster_stacks(self) -> Any:
            return SimpleNamespace(stacks=[stack])

    done: list[str] = []
    monkeypatch.setattr(up_command, "AwsClustersAccount", Account)
    monkeypatch.setattr(up_command, "cdk_folder", lambda *_: Path())
    monkeypatch.setattr(up_command, "switch", lambda *_, **__: done.append(WOKEN) or "awake")
    monkeypatch.setattr(up_command, "deploy_plan", lambda *_, **__: done.append(DEPLOYED) or ExitCode.OK)
    assert up_command._deploy(Invocation(), Plan.of(**CLUSTER), yes=True) is ExitCode.OK
    assert (done or [RUNNING]) == [then]


@pytest.mark.parametrize(
    ("code", "lacking", "destroyed"),
    [
        (ExitCode.OK, (), True),
        (ExitCode.NOT_READY, (), True),
        (ExitCode.OK, ("outputs/model.pt: denied",), False),
        (ExitCode.RESULTS_LOST, (), False),
        (ExitCode.UNKNOWN, (), False),
    ],
    ids=["succeeded", "failed", "not fetched", "results lost", "unknown"],
)
def test_down_destroys_only_after_every_result_is_fetched(
    monkeypatch: pytest.MonkeyPatch, code: ExitCode, lacking: Sequence[str], destroyed: bool
) -> None:
    write_plan(PLAN)
    ended_clusters: list[str] = []
    fetched: list[Sequence[str]] = []

    def fetch(_jobs: object, _job: str, _folder: Path, kinds: Sequence[str]) -> Sequence[str]:
        fetched.append(kinds)
        return lacking

    def take_down(_invocation: object, **_options: Any) -> ExitCode:
        ended_clusters.append("gone")
        return ExitCode.OK

    for name, fake in {
        "_check": lambda *_: None,
        "_deploy": lambda *_, **__: ExitCode.OK,
        "_prepare": lambda *_: (None, SimpleNamespace(store=None), SimpleNamespace(job_id="train-1")),
        "_show_cluster": lambda *_: None,
        "submit_and_follow": lambda *_, **__: None,
        "job_exit_code": lambda _: code,
        "fetch_results": fetch,
        "take_down": take_down,
    }.items():
        monkeypatch.setattr(up_command, name, fake)
    ended = run("up", "train.py", "--down", "--yes")
    assert bool(ended_clusters) == destroyed
    assert fetched == [("outputs", "checkpoints", "incomplete-checkpoints")]
    assert ended.exit_code == (code or (ExitCode.OK if destroyed else ExitCode.UNKNOWN))


def test_file_that_arrives_cut_is_named(tmp_path: Path) -> None:
    class Cut:
        def files(self, _job: str, folder: str) -> dict[str, int]:
            return {"outputs/whole.pt": 4, "outputs/cut.pt": 8} if folder == "outputs" else {}

        def download(self, _job: str, _name: str, path: str) -> None:
            Path(path).write_text("1234")

    jobs: Any = Cut()
    lacking = fetch_results(jobs, "train-1", tmp_path, ("outputs", "checkpoints"))
    assert lacking == ["outputs/cut.pt: the local file is missing or has another size"]
    assert (tmp_path / "train-1" / "outputs" / "whole.pt").exists()
