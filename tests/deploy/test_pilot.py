"""`trn pilot` on an embedded AWS: killed after each change of the first cluster, then continued to its end.

tests/core/test_pilot.py kills a pilot at every step.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests import forked
from tests.cli.running import run
from tests.constructs.synth import ROOT, cluster_template
from tests.deploy.account import Account, differences
from tests.deploy.command import run_trn
from tools.demo.inventory import Inventory
from trainium_cli.evidence import pilot_command
from trainium_cli.evidence.pilot_command import PilotCommands, file_digest
from trainium_core.evidence.pilot import DONE, Outside, PilotRun, PilotState, StepEnd
from trainium_core.evidence.pilot_file import PilotStep, pilot_steps, read_pilot_file
from trainium_local.environment import safe_environment, tool_folders

PILOT = """
plan = "cdk.json"
job = "job.toml"
budget_usd = 500
hours = 2
code = "src"
baseline = "gpu/cdk.json"
"""
PRICES = """product,instance_type,region,usd,date,source
on-demand,g6e.xlarge,us-west-2,1.861,2026-11-24,of this test
"""
JOB = 'command = "echo side $TRN_NODES"\nname = "hello"\n'
TRAINIUM = {"instance_type": "trn1.2xlarge", "region": "us-west-2", "ends": "5d", "cluster_name": "small"}


def write_app(folder: Path, more: Mapping[str, Any], **settings: Any) -> None:
    """Write a cdk.json whose app is already synthesised.

    Args:
        more: Settings that do not affect the template, by their keys in cdk.json.
        settings: Settings of the plan.
    """
    context = {**{f"trn:{name}": value for name, value in settings.items()}, **more}
    content = {"app": str(cluster_template(nodes=1, **settings).file.parent), "context": context}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cdk.json").write_text(json.dumps(content))


@pytest.fixture(scope="module")
def folder(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a plan, its GPU plan by `trn baseline`, a job and a pilot."""
    folder = tmp_path_factory.mktemp("pilot")
    write_app(folder, {"trn:prices": "prices.csv"}, **TRAINIUM)
    for name, text in {"prices.csv": PRICES, "job.toml": JOB, "both.toml": PILOT}.items():
        (folder / name).write_text(text)
    (folder / "src").mkdir()
    (folder / "src/train.py").write_text("import torch\n")
    written = run_trn(account, "baseline", "--offline", "--output", "gpu", folder=folder)
    assert written.code == 0, written.printed
    settings = json.loads((folder / "gpu/cdk.json").read_text())["context"]
    prices = {"trn:prices": settings.pop("trn:prices")}
    write_app(folder / "gpu", prices, **{key.removeprefix("trn:"): value for key, value in settings.items()})
    return folder


@pytest.fixture(scope="module")
def _environment(account: Account, folder: Path) -> Iterator[None]:
    safe = safe_environment(os.environ, account.aws.connection, tools=tool_folders(ROOT))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, value in (safe | {"CDK_HOME": str(account.folder)}).items():
            patch.setenv(name, value)
        patch.setattr(pilot_command.subprocess, "Popen", ForkedCommand)
        yield


class ForkedCommand:
    """Replaces subprocess.Popen by a fork, which does not import the modules of `trn` again."""

    def __init__(self, command: Sequence[str], *, cwd: Path, **_: Any) -> None:
        self._ran = forked.run_trn(command[3:], folder=cwd.absolute(), environment=os.environ, stderr_apart=True)
        self.returncode = self._ran.returncode

    def communicate(self, **_: Any) -> tuple[str, None]:
        return self._ran.stdout, None


class KilledError(BaseException):
    """Replaces SIGKILL: no code of the product catches it."""


class Killed:
    """Runs of a pilot in this process, each of which is killed after the next change of the first cluster."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "both.toml"
        self.pilot = read_pilot_file(PILOT, folder)
        self.place = folder / self.pilot.folder
        for part in ("steps", "evidence"):
            (self.place / part).mkdir(parents=True)
        self.calls = list[str]()
        self.fatal = [f"trainium {name}" for name in ("deploy", "start", "destroy")]

    def run(self) -> None:
        stored = self.place / "pilot.json"
        state = PilotState(digest=file_digest(self.pilot, self._file))
        if stored.exists():
            state = PilotState.from_json(stored.read_text())
        options = {side: ("--file", file) for side, file in self.pilot.sides.items()}
        commands = PilotCommands(self.pilot, state, self._file.parent, options, yes=True)

        def run_and_die(step: PilotStep, job: str, seconds: float | None) -> StepEnd:
            end = commands.run(step, job, seconds)
            self.calls.append(step.key)
            if step.key in self.fatal and self.calls.count(step.key) == 1:
                raise KilledError
            return end

        outside = Outside(
            run=run_and_die,
            save=commands.save,
            confirm=lambda: True,
            say=lambda _line: None,
            now=lambda: datetime.now(UTC),
        )
        PilotRun(self.pilot, state, outside).run()


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A pilot that was killed repeatedly and then completed, with the account before and after."""

    killed: Killed
    continued: Result
    before: Inventory
    after: Inventory

    @property
    def state(self) -> PilotState:
        return PilotState.from_json((self.killed.place / "pilot.json").read_text())

    def output(self, name: str) -> Any:
        return json.loads((self.killed.place / name).read_text())


@pytest.fixture(scope="module")
def whole(account: Account, folder: Path, _environment: None) -> Whole:
    before, killed = account.inventory(), Killed(folder)
    for _ in killed.fatal:
        with pytest.raises(KilledError):
            killed.run()
    continued = run("pilot", "both.toml", "--yes")
    return Whole(killed=killed, continued=continued, before=before, after=account.inventory())


def test_pilot_continues_after_every_kill_to_its_end(whole: Whole) -> None:
    assert whole.continued.exit_code == 0, whole.continued.output
    assert all(stored["state"] == DONE for stored in whole.state.steps.values()), whole.state.steps
    assert {step.key for step in pilot_steps(whole.killed.pilot)} == set(whole.state.steps)


def test_pilot_leaves_nothing_billed(whole: Whole) -> None:
    assert "No cluster of the pilot is billed." in whole.continued.output
    assert differences(whole.before, whole.after) == []
    assert [all(end for _, end in times) for times in whole.state.billed.values()] == [True, True]


def test_killed_pilot_starts_its_job_once(whole: Whole) -> None:
    assert whole.killed.calls.count("trainium start") == 1
    assert "trainium jobs" in whole.killed.calls
    for side in ("trainium", "gpu"):
        assert whole.output(f"evidence/{side}.job.json")["status"] == "succeeded"


def test_pilot_keeps_the_evidence_of_each_side(whole: Whole) -> None:
    assert whole.output("evidence/assess.json")
    for side, instance_type in (("trainium", "trn1.2xlarge"), ("gpu", "g6e.xlarge")):
        assert whole.output(f"steps/{side}-plan.json")["plan"]["instance_type"] == instance_type
        assert whole.output(f"steps/{side}-nodes.json")
    assert "<html" in (whole.killed.place / "report.html").read_text()
