"""Which stacks the app makes: those that the CDK CLI was given by name, else those of trn:stacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.selected_stacks import cdk_command_line, with_selected_stacks
from tests.constructs.synth import ROOT, a_plan
from trainium_core import PlanError

ALL = ("cluster", "sagemaker", "hyperpod")


@pytest.mark.parametrize(
    ("command", "stacks"),
    [
        ("deploy TrnClusterStack", ("cluster",)),
        ("deploy SageMakerTrainingStack -c trn:nodes=4", ("sagemaker",)),
        ("--no-color diff HyperPodStack", ("hyperpod",)),
        ("destroy TrnClusterStack SageMakerTrainingStack", ("cluster", "sagemaker")),
        ("deploy SageMaker*", ("sagemaker",)),
        ("deploy *Stack", ALL),
        ("ls", ALL),
        ("list --long", ALL),
        ("deploy", ("cluster",)),
        ("synth", ("cluster",)),
        ("deploy --all", ("cluster",)),
        ("deploy *", ("cluster",)),
        ("deploy AnotherStack", ("cluster",)),
        ("", ("cluster",)),
    ],
)
def test_a_stack_that_is_named_is_made_and_otherwise_those_of_the_setting(
    command: str, stacks: tuple[str, ...]
) -> None:
    assert with_selected_stacks(a_plan(), command.split()).stacks == stacks


def test_without_a_name_the_setting_decides() -> None:
    assert with_selected_stacks(a_plan(stacks=("cluster", "hyperpod")), ["deploy", "--all"]).stacks == (
        "cluster",
        "hyperpod",
    )


def test_a_name_counts_more_than_the_setting() -> None:
    assert with_selected_stacks(a_plan(stacks=("hyperpod",)), ["synth", "TrnClusterStack"]).stacks == ("cluster",)


SMALL = {"instance_type": "trn2.3xlarge", "region": "sa-east-1", "nodes": 1}


def test_a_list_leaves_out_what_the_plan_does_not_allow() -> None:
    assert with_selected_stacks(a_plan(**SMALL), ["list"]).stacks == ("cluster", "hyperpod")


def test_a_stack_that_the_plan_does_not_allow_is_refused_when_it_is_named() -> None:
    with pytest.raises(PlanError, match="with sagemaker in trn:stacks"):
        with_selected_stacks(a_plan(**SMALL), ["deploy", "SageMakerTrainingStack"])


def a_process(folder: Path, number: int, parent: int, *arguments: str) -> Path:
    process = folder / str(number)
    process.mkdir()
    (process / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
    (process / "cmdline").write_text("".join(f"{argument}\0" for argument in arguments))
    return process


@pytest.mark.parametrize("cli", [["cdk"], ["node", "/home/me/node_modules/.bin/cdk"], ["node", "--x", "bin/cdk.js"]])
def test_the_cli_is_found_behind_the_shell_that_it_starts(tmp_path: Path, cli: list[str]) -> None:
    a_process(tmp_path, 10, 1, *cli, "deploy", "HyperPodStack")
    a_process(tmp_path, 20, 10, "/bin/sh", "-c", "python3 app.py")
    assert cdk_command_line(a_process(tmp_path, 30, 20, "python3", "app.py")) == ["deploy", "HyperPodStack"]


def test_without_the_cli_there_is_no_command_line(tmp_path: Path) -> None:
    a_process(tmp_path, 10, 0, "bash", "/home/me/deploy", "HyperPodStack")
    assert cdk_command_line(a_process(tmp_path, 30, 10, "python3", "app.py")) == []


def test_where_processes_cannot_be_seen_there_is_no_command_line(tmp_path: Path) -> None:
    assert cdk_command_line(tmp_path / "self") == []


def run_cli(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run the pinned CLI on the app of this repository; what it synthesises goes to `folder`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", *command, "--no-notices", "--output", folder],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_VALIDATION": "false"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def test_the_real_cli_lists_every_stack(tmp_path: Path) -> None:
    run = run_cli(tmp_path, "ls")
    assert run.stdout.split() == ["TrnClusterStack", "SageMakerTrainingStack", "HyperPodStack"], run.stderr


def test_the_real_cli_makes_the_stack_that_it_names_and_no_other(tmp_path: Path) -> None:
    run = run_cli(tmp_path, "synth", "--quiet", "SageMakerTrainingStack")
    made = [file.name for file in tmp_path.glob("*.template.json")]
    assert (run.returncode, made) == (0, ["SageMakerTrainingStack.template.json"]), run.stderr


def test_the_real_cli_reports_what_a_plan_does_not_allow(tmp_path: Path) -> None:
    elsewhere = ["-c", "trn:instance_type=trn2.3xlarge", "-c", "trn:region=sa-east-1", "-c", "trn:nodes=1"]
    run = run_cli(tmp_path, "deploy", "SageMakerTrainingStack", *elsewhere)
    assert run.returncode == 1
    assert "trn:instance_type: got 'trn2.3xlarge'" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_cluster_loads_nothing_of_the_other_stacks() -> None:
    program = "import sys, stacks.trn_cluster_stack; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "trainium_cdk.cluster" in loaded
    assert loaded.isdisjoint({"trainium_cdk.hyperpod", "trainium_cdk.sagemaker_training", "aws_cdk.aws_stepfunctions"})
