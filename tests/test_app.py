"""app.py reports problems in the plan by setting, and the app of `trn init` creates the same stacks."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk
import pytest

from tests.cli.running import run
from tests.constructs.synth import new_app
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan.context import plan_from_file

ROOT = Path(__file__).parents[1]
GOOD = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 2}


@pytest.fixture
def run_app(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs an app with a context in this process, where the CDK has already started, and returns the templates."""

    def run_file(context: dict[str, Any], file: Path = ROOT / "app.py") -> dict[str, Any]:
        monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps(context))
        made = new_app()
        monkeypatch.setattr(aws_cdk, "App", lambda: made)
        runpy.run_path(str(file))
        return {path.name: json.loads(path.read_text()) for path in Path(made.outdir).glob("*.template.json")}

    return run_file


def refusal(run_app: Any, context: dict[str, Any]) -> str:
    """The message with which the app exits."""
    with pytest.raises(SystemExit) as ended:
        run_app(context)
    return str(ended.value)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"trn:nodes": "four"}, ["trn:nodes: got 'four'", "a whole number"]),
        ({"trn:node": "4"}, ["trn:node: got '4'", "nearest: nodes", "write trn:nodes"]),
        ({"trn:instance_type": "trn1.32xl"}, ["trn:instance_type: got 'trn1.32xl'", "nearest: trn1.32xlarge"]),
        ({"trn:capacity": "capacity-block"}, ["trn:reservation_id: got nothing"]),
        ({"trn:setup_script": "no-such-file"}, ["trn:setup_script", "does not exist"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_problem_is_reported_without_a_traceback(run_app: Any, mistake: dict[str, str], words: list[str]) -> None:
    message = refusal(run_app, GOOD | mistake)
    assert [word for word in words if word not in message] == [], message
    assert "The plan has 1 problem; nothing was deployed." in message


def test_all_problems_are_reported_at_once(run_app: Any) -> None:
    message = refusal(run_app, {"trn:nodes": "four", "trn:capacity": "free"})
    assert "The plan has 4 problems" in message
    assert all(f"trn:{key}: got" in message for key in ("nodes", "capacity", "instance_type", "region"))


def test_plan_in_the_repository_ends_after_five_days() -> None:
    assert plan_from_file(ROOT / "cdk.json", ()).pilot.ends == "5d"


def test_context_too_large_for_environment_is_read_from_file(
    run_app: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflow = tmp_path / "context.json"
    overflow.write_text(json.dumps({"trn:nodes": "many"}))
    monkeypatch.setenv("CONTEXT_OVERFLOW_LOCATION", str(overflow))
    assert "trn:nodes: got 'many'" in refusal(run_app, GOOD)


def cdk(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run the pinned CLI on the app of this repository, with its output in `folder`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_VALIDATION": "false"}
    words = [ROOT / "node_modules" / ".bin" / "cdk", *command, "--no-notices", "--output", folder]
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=480)


def test_bare_synth_makes_the_default_stack(tmp_path: Path) -> None:
    result = cdk(tmp_path, "synth", "--quiet")
    made = [file.name for file in tmp_path.glob("*.template.json")]
    assert (result.returncode, made) == (0, ["TrnClusterStack.template.json"]), result.stderr


def test_setting_stacks_selects_the_stacks(run_app: Any) -> None:
    made = run_app(GOOD | {"trn:stacks": "sagemaker"})
    assert list(made) == ["SageMakerTrainingStack.template.json"]


def test_app_of_trn_init_creates_the_stacks_of_this_app(run_app: Any, tmp_path: Path) -> None:
    run("init", str(tmp_path / "pilot"), "--yes")
    context = GOOD | {
        "trn:stacks": list(CONSTRUCT_IDS),
        "trn:eks_cluster": "prod",
        "trn:ends": "5d",
        "trn:tags": {"team": "ml"},
    }
    made = run_app(context)
    assert {f"{name}.template.json" for name in CONSTRUCT_IDS.values()} == set(made)
    assert run_app(context, tmp_path / "pilot" / "app.py") == made
