"""`trn init`: the files that it writes, and what it refuses."""

import ast
import json
import re
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.running import run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.setup import init_command
from trainium_core.evidence.bench_file import BenchFile, bench_jobs, read_bench_file
from trainium_core.evidence.pilot_file import PilotFile, read_pilot_file
from trainium_core.evidence.tco_file import TcoFile, read_tco_file
from trainium_core.jobs.request import read_job_file
from trainium_core.plan.context import plan_from_file

ROOT = Path(__file__).parents[3]
OPTIONS = ("--type", "trn1.32xlarge", "--region", "us-west-2", "--nodes", "2", "--ends", "8h", "--name", "mine")


def test_written_plan_has_the_given_settings(tmp_path: Path) -> None:
    ended = run("init", str(tmp_path / "new"), *OPTIONS)
    assert ended.exit_code == ExitCode.OK, ended.output
    plan = plan_from_file(tmp_path / "new" / "cdk.json", [])
    assert (plan.instance_type, plan.region, plan.nodes) == ("trn1.32xlarge", "us-west-2", 2)
    assert (plan.cluster_name, plan.pilot.ends) == ("mine", "8h")


@pytest.mark.parametrize(
    ("ends", "shown"), [("8h", "after 8h."), ("2999-12-01T18:00 Europe/Berlin", "at 2999-12-01T17:00Z.")]
)
def test_shown_end_is_a_duration_or_a_time(tmp_path: Path, ends: str, shown: str) -> None:
    ended = run("init", str(tmp_path), "--yes", "--ends", ends)
    assert f"The nodes are terminated {shown}" in ended.stdout


@pytest.mark.parametrize(
    ("folder", "name"),
    [("nanoGPT", "nanogpt"), ("2_my  run.v3", "my-run-v3"), ("42", "trn-pilot"), ("x" * 40, "x" * 32)],
)
def test_cluster_is_named_after_its_folder(tmp_path: Path, folder: str, name: str) -> None:
    ended = run("init", str(tmp_path / folder), "--yes")
    assert f"{name}: 1 x trn1.32xlarge" in ended.stdout
    assert plan_from_file(tmp_path / folder / "cdk.json", []).cluster_name == name


def test_each_project_has_its_own_id(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        run("init", str(tmp_path / folder), "--yes")
    first, second = (plan_from_file(tmp_path / folder / "cdk.json", []).project_id for folder in ("a", "b"))
    assert None not in (first, second)
    assert first != second


def test_stack_without_support_is_named_with_the_price(tmp_path: Path) -> None:
    shown = " ".join(run("init", str(tmp_path), "--yes").stdout.split())
    assert "support AWS does not support training with PyTorch/XLA" in shown


def test_app_is_in_cdk_json_and_job_file_is_valid(tmp_path: Path) -> None:
    run("init", str(tmp_path), *OPTIONS)
    assert read_job_file(tmp_path / "job" / "job.toml")["command"] == "python3 fit.py"
    assert json.loads((tmp_path / "cdk.json").read_text())["app"] == "python3 app.py"


def test_cdk_json_has_the_recommended_feature_flags_after_the_plan(tmp_path: Path) -> None:
    run("init", str(tmp_path), *OPTIONS)
    context, own = (json.loads((folder / "cdk.json").read_text())["context"] for folder in (tmp_path, ROOT))
    flags = {key: value for key, value in own.items() if key.startswith("@aws-cdk")}
    assert {key: value for key, value in context.items() if not key.startswith("trn:")} == flags
    assert all(key.startswith("trn:") for key in [*context][: len(context) - len(flags)])


def test_requirements_pin_the_version_that_wrote_the_folder(tmp_path: Path) -> None:
    run("init", str(tmp_path), *OPTIONS)
    pinned = (tmp_path / "requirements.txt").read_text().splitlines()[-1]
    assert pinned == f"trainium-cdk[cli]=={version('trainium-cdk')}"


def test_git_ignores_what_the_tools_write(tmp_path: Path) -> None:
    run("init", str(tmp_path), *OPTIONS)
    assert {"cdk.out/", "node_modules/", "audit-*.md", "trn-support-*.tar.gz"} <= set(
        (tmp_path / ".gitignore").read_text().splitlines()
    )


def test_app_uses_only_names_that_are_stable_between_releases(tmp_path: Path) -> None:
    run("init", str(tmp_path), *OPTIONS)
    package = ast.parse((ROOT / "constructs" / "trainium_cdk" / "__init__.py").read_text())
    (stable,) = [node.value for node in package.body if isinstance(node, ast.Assign) and "__all__" in ast.dump(node)]
    imports = [node for node in ast.parse((tmp_path / "app.py").read_text()).body if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports if str(node.module) == "trainium_cdk" for alias in node.names}
    assert {str(node.module) for node in imports} == {"pathlib", "aws_cdk", "trainium_cdk"}
    assert names <= set(ast.literal_eval(stable))


def test_folder_with_files_gets_a_plan_and_an_app_beside_them(tmp_path: Path) -> None:
    own = {"app.py": "import gradio", "train.py": "", "README.md": "# Mine"}
    for name, text in own.items():
        (tmp_path / name).write_text(text)
    assert "Written: cdk.json, cdk_app.py." in run("init", str(tmp_path), *OPTIONS).stdout
    assert {name: (tmp_path / name).read_text() for name in own} == own
    assert json.loads((tmp_path / "cdk.json").read_text())["app"] == "python3 cdk_app.py"


def test_existing_plan_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text("{}")
    ended = run("init", str(tmp_path), *OPTIONS)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "already contains cdk.json" in ended.stderr
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("cdk.json", "{}")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "not a terminal: pass --type and --region"),
        (("--type", "trn1.32xl", "--region", "us-west-2"), "nearest: trn1.32xlarge"),
        (("--yes", "--nodes", "four"), "trn:nodes: got 'four'"),
        (("--yes", "--ends", "2020-01-01T00:00Z"), "trn:ends: got '2020-01-01T00:00Z'"),
    ],
)
def test_missing_or_invalid_options_write_nothing(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    ended = run("init", str(tmp_path), *options)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert message in ended.output
    assert list(tmp_path.iterdir()) == []


def test_us_east_2_is_proposed_for_trn2(tmp_path: Path) -> None:
    assert run("init", str(tmp_path / "new"), "--type", "trn2.48xlarge", "--yes").exit_code == ExitCode.OK
    plan = plan_from_file(tmp_path / "new" / "cdk.json", [])
    assert plan.region == "us-east-2"


BLOCK = "cr-0123456789abcdef0"


@pytest.fixture
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init_command, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))


@pytest.mark.usefixtures("_terminal")
def test_purposes_are_shown_with_price_and_support(tmp_path: Path) -> None:
    shown = " ".join(run("init", str(tmp_path / "new"), stdin="\n" * 7).stdout.split())
    assert re.search(r"the tools: .* 1 x trn1\.32xlarge, on-demand: \$21\.\d\d per hour.* AWS does not support", shown)
    assert re.search(
        r"worth it, with native PyTorch .*, which AWS supports\. 1 x trn2\.48xlarge, capacity-block", shown
    )
    assert plan_from_file(tmp_path / "new" / "cdk.json", []).instance_type == "trn1.32xlarge"


@pytest.mark.usefixtures("_terminal")
def test_pilot_for_a_decision_is_on_trainium2_in_a_block(tmp_path: Path) -> None:
    ended = run("init", str(tmp_path / "new"), stdin=f"decide\n\n\n\n\n{BLOCK}\n\n\n")
    assert ended.exit_code == ExitCode.OK, ended.output
    plan = plan_from_file(tmp_path / "new" / "cdk.json", [])
    assert (plan.instance_type, plan.capacity, plan.reservation_id) == ("trn2.48xlarge", "capacity-block", BLOCK)
    assert "trn doctor, trn image pin, trn plan, trn deploy" in ended.stdout


@pytest.mark.usefixtures("_terminal")
def test_capacity_block_is_proposed_for_a_type_without_on_demand_price(tmp_path: Path) -> None:
    ended = run("init", str(tmp_path / "new"), stdin=f"try\ntrn2.48xlarge\n\n\n\n{BLOCK}\n\n\n")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert plan_from_file(tmp_path / "new" / "cdk.json", []).capacity == "capacity-block"
    assert "p5.48xlarge" not in ended.stdout


@pytest.mark.usefixtures("_terminal")
def test_without_a_block_the_command_that_finds_one_is_shown(tmp_path: Path) -> None:
    ended = run("init", str(tmp_path / "new"), stdin="decide\n\n\n\n\n\n")
    assert (ended.exit_code, (tmp_path / "new").exists()) == (ExitCode.NOT_READY, False)
    command = "trn capacity -c trn:instance_type=trn2.48xlarge -c trn:region=us-east-2 -c trn:nodes=1"
    assert command in " ".join(ended.stderr.split())


def test_purpose_sets_the_proposed_values_in_scripts(tmp_path: Path) -> None:
    ended = run("init", str(tmp_path / "new"), "--for", "decide", "--reservation-id", BLOCK, "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert plan_from_file(tmp_path / "new" / "cdk.json", []).instance_type == "trn2.48xlarge"
    refused = run("init", str(tmp_path / "other"), "--for", "decide", "--yes")
    assert (refused.exit_code, "`trn capacity` shows" in refused.stderr) == (ExitCode.BAD_INPUT, True)


def _evidence_files(folder: Path) -> tuple[PilotFile, BenchFile, TcoFile]:
    """The three files as their commands read them."""
    bench = read_bench_file((folder / "bench.toml").read_bytes(), folder / "bench.toml")
    assert list(bench_jobs(bench)) == [side.name for side in bench.sides]
    return (
        read_pilot_file((folder / "pilot.toml").read_text(), folder),
        bench,
        read_tco_file((folder / "tco.toml").read_text()),
    )


def test_evidence_files_fit_the_plan_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init", str(tmp_path), *OPTIONS)
    ended = run("init", str(tmp_path), "--evidence")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "Written: pilot.toml, bench.toml, tco.toml." in ended.stdout
    pilot, bench, tco = _evidence_files(tmp_path)
    assert (pilot.sides, pilot.bench, pilot.hours) == ({"trainium": "cdk.json"}, "bench.toml", 8)
    assert pilot.budget_usd > 8 * 2 * 21
    assert [(side.name, side.used) for side in bench.sides] == [("trainium", 32)]
    assert bench.gates == {}
    assert [side.record for side in tco.sides] == ["pilot/evidence/mine-trainium.json"]
    assert tco.work.source == "example of trn init: replace it"
    monkeypatch.chdir(tmp_path)
    shown = run("pilot", "--dry-run")
    assert (shown.exit_code, "trn bench bench.toml" in shown.stdout) == (ExitCode.OK, True)


def test_evidence_files_compare_with_the_gpu_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init", str(tmp_path), *OPTIONS)
    monkeypatch.chdir(tmp_path)
    assert run("baseline", "--output", "gpu").exit_code == ExitCode.OK
    assert run("init", "--evidence").exit_code == ExitCode.OK
    pilot, bench, tco = _evidence_files(tmp_path)
    assert pilot.baseline == "gpu/cdk.json"
    assert [side.name for side in bench.sides] == [side.name for side in tco.sides] == ["trainium", "gpu"]
    assert bench.fidelity is not None
    assert run("pilot", "--dry-run").exit_code == ExitCode.OK
    (tmp_path / "tco.toml").write_text("mine")
    assert "Nothing was written" in run("init", "--evidence").stdout
    assert (tmp_path / "tco.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("missing", "message"), [("cdk.json", "has no cdk.json"), ("job/job.toml", "has no job: write a job file")]
)
def test_evidence_files_need_a_plan_and_a_job(missing: str, message: str, tmp_path: Path) -> None:
    run("init", str(tmp_path), *OPTIONS)
    (tmp_path / missing).unlink()
    ended = run("init", str(tmp_path), "--evidence")
    assert (ended.exit_code, message in " ".join(ended.stderr.split())) == (ExitCode.BAD_INPUT, True)
    assert not (tmp_path / "pilot.toml").exists()


@pytest.mark.parametrize("command", ["pilot", "bench", "tco"])
def test_command_without_its_file_names_the_command_that_writes_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(command)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"{command}.toml does not exist: `trn init --evidence` writes" in " ".join(ended.stderr.split())
