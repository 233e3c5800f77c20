"""app.py as the CDK CLI runs it: a problem in the plan is reported by its setting, before aws_cdk is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk
import pytest

import app
from tests.constructs.synth import a_plan, new_app
from trainium_core.plan.context import plan_from_file

ROOT = Path(__file__).parents[1]
GOOD = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 2}


@pytest.fixture
def run_app(tmp_path: Path) -> Any:
    """Runs app.py with a context, in a process where `import aws_cdk` exits with 99, and returns the process."""
    (tmp_path / "aws_cdk.py").write_text("import os\nos._exit(99)\n")

    def run(context: dict[str, Any] | None, **variables: str) -> subprocess.CompletedProcess[str]:
        passed = {} if context is None else {"CDK_CONTEXT_JSON": json.dumps(context)}
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), **passed, **variables}
        return subprocess.run(
            [sys.executable, ROOT / "app.py"], env=environment, capture_output=True, text=True, check=False, timeout=180
        )

    return run


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
    result = run_app(GOOD | mistake)
    assert result.returncode == 1
    assert [word for word in words if word not in result.stderr] == [], result.stderr
    assert "Traceback" not in result.stderr
    assert "The plan has 1 problem; nothing was deployed." in result.stderr


def test_all_problems_are_reported_at_once(run_app: Any) -> None:
    result = run_app({"trn:nodes": "four", "trn:capacity": "free"})
    assert "The plan has 4 problems" in result.stderr
    assert all(f"trn:{key}: got" in result.stderr for key in ("nodes", "capacity", "instance_type", "region"))


def test_plan_in_the_repository_ends_after_five_days() -> None:
    assert plan_from_file(ROOT / "cdk.json", ()).pilot.ends == "5d"


def test_valid_plan_is_passed_to_the_cdk(run_app: Any) -> None:
    assert run_app(GOOD).returncode == 99


def test_context_too_large_for_environment_is_read_from_file(run_app: Any, tmp_path: Path) -> None:
    overflow = tmp_path / "context.json"
    overflow.write_text(json.dumps({"trn:nodes": "many"}))
    result = run_app(GOOD, CONTEXT_OVERFLOW_LOCATION=str(overflow))
    assert "trn:nodes: got 'many'" in result.stderr


def cdk(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run the pinned CLI on the app of this repository, with its output in `folder`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_VALIDATION": "false"}
    words = [ROOT / "node_modules" / ".bin" / "cdk", *command, "--no-notices", "--output", folder]
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=180)


def test_bare_synth_makes_the_default_stack(tmp_path: Path) -> None:
    result = cdk(tmp_path, "synth", "--quiet")
    made = [file.name for file in tmp_path.glob("*.template.json")]
    assert (result.returncode, made) == (0, ["TrnClusterStack.template.json"]), result.stderr


def test_setting_stacks_selects_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in the process of the test, where the CDK has already started. The demo runs the app with the CDK CLI."""
    cdk_app = new_app()
    monkeypatch.setattr(aws_cdk, "App", lambda: cdk_app)
    app.synthesize(a_plan(stacks=("sagemaker", "pcs")))
    assert [child.node.id for child in cdk_app.node.children if isinstance(child, aws_cdk.Stack)] == [
        "SageMakerTrainingStack",
        "PcsStack",
    ]
