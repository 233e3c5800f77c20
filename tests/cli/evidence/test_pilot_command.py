"""`trn pilot`, without an account: what it refuses, shows and runs. tests/deploy/test_pilot.py runs a whole one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from trainium_cli.evidence import pilot_command
from trainium_cli.exit_codes import ExitCode
from trainium_core.evidence.pilot import PilotState, StepEnd
from trainium_core.evidence.pilot_file import PilotStep

TRAINIUM = {"trn:instance_type": "trn1.2xlarge", "trn:region": "us-west-2"}
FILE = """plan = "cdk.json"
job = "job.toml"
budget_usd = 100
hours = 3
"""
JOB = """name = "fit"
command = "true"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, TRAINIUM)
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "pilot.toml").write_text(FILE)
    return tmp_path


def write(folder: Path, context: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "cdk.json").write_text(json.dumps({"app": "python3 app.py", "context": context}))


def steps_run(monkeypatch: pytest.MonkeyPatch, *, exit_code: int = 0) -> list[str]:
    calls: list[str] = []

    def record(_self: object, step: PilotStep, _job: str, _seconds: float | None) -> StepEnd:
        calls.append(step.key)
        printed = {"totals": {"running_hour": {"usd_at_least": 2.0, "unknown_prices": 0}}, "job": {"id": "job-1"}}
        return StepEnd(exit_code=exit_code, output=json.dumps(printed))

    monkeypatch.setattr(pilot_command.PilotCommands, "run", record)
    return calls


def test_dry_run_shows_commands_with_an_end_and_writes_nothing(folder: Path) -> None:
    before = sorted(folder.iterdir())
    shown = run("pilot", "pilot.toml", "--dry-run")
    assert shown.exit_code == ExitCode.OK
    text = " ".join(shown.stdout.split())
    assert "Step State Command" in text
    assert "trn deploy --yes --file cdk.json -c trn:ends=3h -c trn:ends_action=destroy" in text
    assert sorted(folder.iterdir()) == before


def test_plan_with_an_end_keeps_it(folder: Path) -> None:
    write(folder, {**TRAINIUM, "trn:ends": "5d"})
    assert "trn:ends" not in run("pilot", "pilot.toml", "--dry-run").stdout


@pytest.mark.usefixtures("folder")
def test_without_terminal_or_yes_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = steps_run(monkeypatch)
    refused = run("pilot", "pilot.toml")
    assert (refused.exit_code, calls) == (ExitCode.BAD_INPUT, [])
    assert "pass --yes" in refused.stderr


def test_complete_pilot_ends_with_the_report_and_shows_its_budget(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = steps_run(monkeypatch)
    shown = run("pilot", "pilot.toml", "--yes")
    assert shown.exit_code == ExitCode.OK, shown.output
    assert calls[-1] == "report"
    assert "of $100.00" in shown.stdout
    assert "No cluster of the pilot is billed." in shown.stdout
    assert PilotState.from_json((folder / "pilot/pilot.json").read_text()).jobs == {"trainium": "job-1"}


@pytest.mark.usefixtures("folder")
def test_failed_check_stops_before_money_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = steps_run(monkeypatch, exit_code=1)
    shown = run("pilot", "pilot.toml", "--yes")
    assert (shown.exit_code, calls) == (ExitCode.NOT_READY, ["trainium plan", "report"])
    assert "Stopped: trainium plan failed with exit code 1." in shown.stdout


def test_changed_job_needs_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps_run(monkeypatch)
    run("pilot", "pilot.toml", "--yes")
    (folder / "job.toml").write_text(JOB.replace("true", "false"))
    refused = run("pilot", "pilot.toml", "--yes")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "job file or bench file that it names, has changed since" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("plan", "baseline", "says"),
    [
        ({"trn:instance_type": "p5.4xlarge"}, {"trn:instance_type": "p5.4xlarge"}, "trainium side has p5.4xlarge"),
        ({}, {"trn:instance_type": "trn1.2xlarge"}, "gpu side has trn1.2xlarge"),
        ({}, {"trn:instance_type": "p5.4xlarge"}, "Both sides have the cluster trn-pilot"),
    ],
)
def test_unsuitable_plans_of_the_sides_are_refused(
    folder: Path, plan: dict[str, str], baseline: dict[str, str], says: str
) -> None:
    write(folder, TRAINIUM | plan)
    write(folder / "gpu", TRAINIUM | baseline)
    (folder / "pilot.toml").write_text(f'{FILE}baseline = "gpu/cdk.json"\n')
    refused = run("pilot", "pilot.toml", "--dry-run")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert says in refused.stderr


def test_invalid_state_is_refused(folder: Path) -> None:
    (folder / "pilot").mkdir()
    (folder / "pilot/pilot.json").write_text("{}")
    refused = run("pilot", "pilot.toml", "--yes")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "set another folder in pilot.toml" in refused.stderr


def test_invalid_file_is_refused(folder: Path) -> None:
    (folder / "pilot.toml").write_text("hours = 1")
    refused = run("pilot", "pilot.toml", "--yes")
    assert (refused.exit_code, "plan is missing" in refused.stderr) == (ExitCode.BAD_INPUT, True)


def test_command_that_takes_too_long_is_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(130)); time.sleep(60)"
    monkeypatch.setattr(pilot_command, "_CODE", code)
    wanted = pilot_command.read_pilot_file(FILE, folder)
    commands = pilot_command.PilotCommands(wanted, PilotState(digest=""), folder, {}, yes=True)
    step = PilotStep(name="follow", kind="billed", arguments=("logs",), writes="out")
    end = commands.run(step, "job-1", 2.0)
    assert end.late


@pytest.mark.parametrize(
    ("steps", "called"),
    [
        ({}, "destroy\n"),
        ({"trainium follow": {"exit_code": 0}}, "destroy --grace 0\n"),
        ({"trainium follow": {"exit_code": 130}}, "destroy\n"),
        ({"bench": {"state": "done"}}, "destroy --grace 0\n"),
        ({"trainium follow": {"exit_code": 0}, "trainium observe": {"exit_code": 0}}, "destroy\n"),
        (
            {
                "trainium follow": {"exit_code": 0},
                "trainium observe": {"exit_code": 0},
                "trainium observe-follow": {"exit_code": 1},
            },
            "destroy --grace 0\n",
        ),
    ],
    ids=["no job", "job over", "job running", "measured", "observed job running", "both jobs over"],
)
def test_notice_is_skipped_only_if_no_job_is_running(
    folder: Path, monkeypatch: pytest.MonkeyPatch, steps: dict[str, dict[str, Any]], called: str
) -> None:
    monkeypatch.setattr(pilot_command, "_CODE", "import sys; print(*sys.argv[1:])")
    wanted = pilot_command.read_pilot_file(FILE, folder)
    commands = pilot_command.PilotCommands(wanted, PilotState(digest="", steps=steps), folder, {}, yes=True)
    step = PilotStep(name="destroy", kind="end", side="trainium", arguments=("destroy", "{grace}"), writes="out")
    assert commands.run(step, "", None).output == called


def test_mistake_in_the_bench_file_is_found_before_a_deployment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = steps_run(monkeypatch)
    (folder / "bench.toml").write_text("steps = 0")
    (folder / "pilot.toml").write_text(FILE.replace('job = "job.toml"', 'bench = "bench.toml"'))
    refused = run("pilot", "pilot.toml", "--yes")
    assert (refused.exit_code, calls) == (ExitCode.BAD_INPUT, [])
    assert "bench.toml has " in refused.stderr


@pytest.mark.parametrize("key", ["job", "observe"])
def test_mistake_in_a_job_file_is_found_before_a_deployment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    calls = steps_run(monkeypatch)
    (folder / "wrong.toml").write_text(f"{JOB}retries = -1")
    named = 'observe = "wrong.toml"\ncode = "job.toml"\n' if key == "observe" else ""
    text = FILE.replace('job = "job.toml"', 'job = "wrong.toml"') if key == "job" else FILE
    (folder / "pilot.toml").write_text(f"{text}{named}")
    refused = run("pilot", "pilot.toml", "--yes")
    assert (refused.exit_code, calls) == (ExitCode.BAD_INPUT, [])
    assert "retries" in refused.stderr
