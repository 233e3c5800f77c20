"""`trn baseline`: what it shows, and the cdk.json that it writes."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode
from trainium_core.plan.context import plan_from_file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    context = {
        "trn:instance_type": "trn1.32xlarge",
        "trn:region": "us-west-2",
        "trn:setup_script": "setup.sh",
        "trn:project_id": "own",
        "mine": 1,
    }
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "python3 app.py", "context": context}))
    (tmp_path / "setup.sh").write_text("true\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_both_sides_are_shown_with_the_reason_and_next_commands(folder: Path) -> None:
    shown = run("baseline", "--offline")
    assert shown.exit_code == ExitCode.OK
    assert "8 A100, 320 GiB" in shown.stdout
    assert "an AWS sample compares Trn1 with P4d" in " ".join(shown.stdout.split())
    assert "trn deploy --file gpu-baseline/cdk.json" in shown.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["cdk.json", "setup.sh"]


def test_written_file_is_the_gpu_plan_of_the_same_app(folder: Path) -> None:
    shown = run("baseline", "--offline", "--output", "gpu", "--json")
    assert json.loads(shown.stdout)["file"] == "gpu/cdk.json"
    written = json.loads((folder / "gpu/cdk.json").read_text())
    (folder / "app.py").write_text("import os; open(os.environ['CDK_OUTDIR'] + '/seen', 'w').write(os.getcwd())")
    (folder / "gpu/cdk.out").mkdir()
    subprocess.run(written["app"], shell=True, cwd="gpu", env={**os.environ, "CDK_OUTDIR": "cdk.out"}, check=True)
    assert (folder / "gpu/cdk.out/seen").read_text() == str(folder.resolve())
    assert written["context"]["mine"] == 1
    assert written["context"]["trn:project_id"] not in (None, "own")
    plan = plan_from_file(Path("gpu/cdk.json"), ())
    assert (plan.instance_type, plan.setup_script) == ("p4d.24xlarge", "true\n")
    assert plan.cluster_name == "trn-pilot-gpu"


def test_next_commands_name_the_folder_of_the_plan(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    shown = " ".join(run("baseline", "--offline", "--file", str(folder / "cdk.json")).stdout.split())
    assert f"repeat the command with --output {folder / 'gpu-baseline'}." in shown
    assert f"trn deploy --file {folder / 'gpu-baseline/cdk.json'}" in shown


def test_existing_file_is_kept(folder: Path) -> None:
    run("baseline", "--offline", "--output", "gpu")
    (folder / "gpu/cdk.json").write_text("{}")
    assert run("baseline", "--offline", "--output", "gpu").exit_code == ExitCode.BAD_INPUT
    assert (folder / "gpu/cdk.json").read_text() == "{}"


def test_plan_without_a_file_is_shown_as_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("baseline", "--offline", *GOOD, "--json")
    assert "-c trn:instance_type=p4d.24xlarge" in json.loads(shown.stdout)["next"][0]
    assert "--output" not in run("baseline", "--offline", *GOOD).stdout
    assert run("baseline", "--output", "gpu", *GOOD).exit_code == ExitCode.BAD_INPUT


@pytest.mark.usefixtures("folder")
def test_gpu_plan_has_no_baseline() -> None:
    refused = run("baseline", "--offline", "-c", "trn:instance_type=p5.4xlarge")
    assert refused.exit_code == ExitCode.NOT_READY
    assert "p5.4xlarge has GPUs" in refused.stderr
