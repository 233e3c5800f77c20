"""The sources of settings: the context from the CDK CLI, cdk.json, and `-c`."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainium_core.plan.context import plan_from_cdk, plan_from_context, plan_from_file, with_settings
from trainium_core.problems import PlanError, Problem

GOOD = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a cdk.json, as the working directory."""
    for variable in ("CDK_CONTEXT_JSON", "CONTEXT_OVERFLOW_LOCATION"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "python3 app.py", "context": {**GOOD, "trn:nodes": 3}}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problems(context: dict[str, Any]) -> tuple[Problem, ...]:
    with pytest.raises(PlanError) as refused:
        plan_from_context({**GOOD, **context}, Path())
    return refused.value.problems


def test_context_from_cdk_cli_is_the_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps({**GOOD, "trn:nodes": "5"}))
    assert plan_from_cdk(folder).nodes == 5


def test_context_too_large_for_environment_is_read_from_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "overflow.json").write_text(json.dumps({"trn:nodes": "6"}))
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps(GOOD))
    monkeypatch.setenv("CONTEXT_OVERFLOW_LOCATION", str(folder / "overflow.json"))
    assert plan_from_cdk(folder).nodes == 6


def test_context_falls_back_to_the_files_of_the_cdk_cli(folder: Path) -> None:
    """As in the CDK CLI, cdk.json overrides cdk.context.json, and both override ~/.cdk.json."""
    in_home = {"context": {"trn:nodes": 7, "trn:capacity": "reservation", "trn:cluster_name": "mine"}}
    (folder / "home" / ".cdk.json").write_text(json.dumps(in_home))
    (folder / "cdk.context.json").write_text(json.dumps({"trn:nodes": 8, "trn:capacity": "spot"}))
    for plan in (plan_from_file(None, []), plan_from_cdk(folder)):
        assert (plan.nodes, plan.capacity, plan.cluster_name) == (3, "spot", "mine")


@pytest.mark.parametrize("name", ["cdk.context.json", "home/.cdk.json"])
def test_invalid_file_is_named_with_its_path(folder: Path, name: str) -> None:
    (folder / name).write_text("{")
    with pytest.raises(PlanError, match=name):
        plan_from_file(None, [])


def test_path_is_relative_to_the_file_that_contains_it(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "setup.sh").write_text("echo inner")
    (folder / "inner" / "cdk.json").write_text(json.dumps({"context": {**GOOD, "trn:setup_script": "setup.sh"}}))
    assert plan_from_file(Path("inner/cdk.json"), []).setup_script == "echo inner"


@pytest.mark.parametrize("content", [b"", b"{", b'{"context": []}', pytest.param(b"\xff\xfe", id="not text")])
def test_unusable_file_is_reported_as_a_problem(folder: Path, content: bytes) -> None:
    (folder / "cdk.json").write_bytes(content)
    with pytest.raises(PlanError) as refused:
        plan_from_file(None, [])
    (problem,) = refused.value.problems
    assert problem.allowed == 'a file that holds a JSON object with the settings under "context"'


def test_context_that_is_not_an_object_is_named(folder: Path) -> None:
    (folder / "cdk.json").write_text('{"context": null}')
    with pytest.raises(PlanError, match='"context" is null, not an object'):
        plan_from_file(None, [])


def test_override_without_value_is_refused(folder: Path) -> None:
    with pytest.raises(PlanError) as refused:
        plan_from_file(folder / "cdk.json", ["trn:node"])
    (problem,) = refused.value.problems
    assert (problem.got, problem.nearest) == ("trn:node", "nodes")
    assert "put an = between" in problem.fix


def test_keys_of_other_libraries_are_ignored() -> None:
    context = {**GOOD, "@aws-cdk/core:checkSecretUsage": True, "vpc-provider:account=1": {}, "stage": "dev", "x:y": 1}
    assert plan_from_context(context, Path()).nodes == 1


@pytest.mark.parametrize(
    ("key", "meant"),
    [("nodes", "trn:nodes"), ("TRN:nodes", "trn:nodes"), ("trn.nodes", "trn:nodes"), ("tnr:nodes", "trn:nodes")],
)
def test_misspelt_setting_key_is_refused(key: str, meant: str) -> None:
    (problem,) = problems({key: "4"})
    assert (problem.nearest, problem.got, problem.fix) == (meant, f"{key}=4", f"write {meant}")


def test_setting_outside_the_context_is_refused(folder: Path) -> None:
    (folder / "cdk.json").write_text(json.dumps({"trn:nodes": 2, "context": GOOD}))
    with pytest.raises(PlanError) as refused:
        plan_from_file(None, [])
    (problem,) = refused.value.problems
    assert (problem.key, problem.fix) == ("nodes", 'move "trn:nodes" into the object "context"')


def test_file_other_than_cdk_json_is_read_alone(folder: Path) -> None:
    (folder / "cdk.context.json").write_text(json.dumps({"trn:capacity": "spot"}))
    (folder / "cdk.json").rename(folder / "other.json")
    assert plan_from_file(folder / "other.json", []).capacity == "on-demand"


def test_missing_named_file_is_refused(folder: Path) -> None:
    with pytest.raises(PlanError) as refused:
        plan_from_file(folder / "ckd.json", [f"{key}={value}" for key, value in GOOD.items()])
    (problem,) = refused.value.problems
    assert str(problem).startswith(f"cdk.json: got {str(folder / 'ckd.json')!r}")
    assert "No such file or directory" in problem.fix


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{}", '{\n  "context": {\n    "trn:ami": "ami-1"\n  }\n}\n'),
        (
            '{\n\t"context": {\n\t\t"trn:ami": "é"\n\t},\n\t"app": "é"\n}\n',
            '{\n\t"context": {\n\t\t"trn:ami": "ami-1"\n\t},\n\t"app": "é"\n}\n',
        ),
    ],
    ids=["no context", "another value"],
)
def test_written_setting_keeps_order_and_indentation(text: str, written: str) -> None:
    assert with_settings(text, {"ami": "ami-1"}) == written
