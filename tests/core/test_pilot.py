"""The sequence of a pilot, with fake commands: a cluster is left only if its deletion failed, and the end names it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.evidence.pilot import (
    BEGUN,
    DONE,
    INTERRUPTED_CODE,
    UNKNOWN_CODE,
    Outside,
    PilotResult,
    PilotRun,
    PilotState,
    StepEnd,
)
from trainium_core.evidence.pilot_file import PilotFile, PilotStep, pilot_steps, read_pilot_file
from trainium_core.evidence.toml_file import TomlFileError

WANTED = PilotFile(plan="cdk.json", job="job.toml", budget_usd=1000, hours=8, code=".", baseline="gpu/cdk.json")
MEASURED = replace(WANTED, job=None, bench="b.toml", observe="o.toml")
KEYS = [step.key for step in pilot_steps(WANTED)]
CASES = [(wanted, step.key) for wanted in (WANTED, MEASURED) for step in pilot_steps(wanted)]
BILLED = ("deploy", "start", "follow", "bench", "observe")
NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


class KilledError(BaseException):
    """The process is killed: it runs no more commands."""


class FakeCommands:
    """Commands of a pilot, and their effects in memory.

    Attributes:
        running: The sides whose cluster exists.
        jobs: The jobs that were started, the newest first.
        stored: The stored state of the pilot.
        limits: The time limit of each step.
        asked: How often confirmation was requested.
        minutes: The duration of a command by its name; others take no time.
    """

    def __init__(self, ends: Callable[[str, int], int] = lambda _key, _times: 0, hourly: float = 40) -> None:
        self.now, self.calls, self.running, self.jobs = NOON, list[str](), set[str](), list[dict[str, str]]()
        self.stored, self.limits, self.asked = "", dict[str, float | None](), 0
        self._ends, self._hourly = ends, hourly
        self.before: Callable[[str], None] = lambda _key: None
        self.after: Callable[[str], None] = lambda _key: None
        self.minutes = {"deploy": 30, "follow": 60}
        self.unknown_price_of = ""
        self.agrees = True

    def run(self, step: PilotStep, job: str, seconds: float | None) -> StepEnd:
        self.before(step.key)
        self.calls.append(step.key)
        self.limits[step.key] = seconds
        code = self._ends(step.key, self.calls.count(step.key))
        spent = timedelta(minutes=self.minutes.get(step.name, 0))
        late = seconds is not None and spent.total_seconds() > seconds
        self.now += timedelta(seconds=seconds) if late and seconds is not None else spent
        if step.name == "deploy":
            self.running.add(step.side)
        if step.name == "destroy" and code == 0:
            self.running.discard(step.side)
        if step.starts and code == 0:
            self.jobs.insert(0, {"id": f"job-{len(self.jobs)}", "submitted_at": f"{self.now:%Y-%m-%dT%H:%M:%SZ}"})
        assert job or "{job}" not in step.arguments
        self.after(step.key)
        return StepEnd(exit_code=code, output=self._output(step), late=late)

    def _output(self, step: PilotStep) -> str:
        if step.name == "estimate":
            unknown = int(step.side == self.unknown_price_of)
            return json.dumps({"totals": {"running_hour": {"usd_at_least": self._hourly, "unknown_prices": unknown}}})
        if step.name == "jobs":
            return json.dumps([{"job": job} for job in self.jobs])
        if step.name == "bench":
            return json.dumps(
                {"error": "a job failed"} if self._ends("bench", self.calls.count("bench")) else {"records": []}
            )
        return json.dumps({"job": self.jobs[0]}) if step.starts and self.jobs else ""

    def save(self, state: PilotState, _step: PilotStep | None, _output: str) -> None:
        self.stored = state.to_json()

    def confirm(self) -> bool:
        self.asked += 1
        return self.agrees

    def pilot(self, wanted: PilotFile = WANTED) -> PilotResult:
        """Run a process of `trn pilot`, with the stored state."""
        state = PilotState.from_json(self.stored) if self.stored else PilotState(digest="")
        outside = Outside(
            run=self.run, save=self.save, confirm=self.confirm, say=lambda _line: None, now=lambda: self.now
        )
        return PilotRun(wanted, state, outside).run()


def test_every_step_runs_once_in_order() -> None:
    commands = FakeCommands()
    assert commands.pilot() == PilotResult(result="complete")
    assert commands.calls == KEYS
    assert commands.running == set()
    assert commands.pilot() == PilotResult(result="complete")
    assert commands.calls == [*KEYS, "report"]


def test_declined_confirmation_runs_only_free_steps() -> None:
    commands = FakeCommands()
    commands.agrees = False
    end = commands.pilot()
    assert (end.result, commands.calls) == ("declined", [*KEYS[: KEYS.index("trainium deploy")], "report"])
    assert commands.asked == 1


@pytest.mark.parametrize(("wanted", "key"), CASES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_pilot_continues_at_its_step(wanted: PilotFile, key: str, moment: str) -> None:
    """Killed before a command, or after it and before its end was stored: no job is started twice."""
    commands, killed = FakeCommands(), list[str]()

    def kill(now: str) -> None:
        if now == key and not killed:
            killed.append(now)
            raise KilledError

    setattr(commands, moment, kill)
    with pytest.raises(KilledError):
        commands.pilot(wanted)
    before = len(commands.calls)
    assert commands.pilot(wanted).result == "complete"
    assert commands.running == set()
    assert set(commands.calls) - {"trainium jobs", "gpu jobs"} == {step.key for step in pilot_steps(wanted)}
    assert len(commands.jobs) == sum(step.starts for step in pilot_steps(wanted))
    repeated = [call for call in commands.calls[before:] if call in commands.calls[:before]]
    if key not in ("trainium destroy", "trainium audit", "gpu destroy", "gpu audit"):
        assert set(repeated) <= {key}


@pytest.mark.parametrize(("wanted", "key"), CASES)
@pytest.mark.parametrize("code", [1, 2, UNKNOWN_CODE, INTERRUPTED_CODE])
def test_failed_step_leaves_only_clusters_whose_deletion_failed(wanted: PilotFile, key: str, code: int) -> None:
    commands = FakeCommands(lambda step, times: code if step == key and times <= 3 else 0)
    end = commands.pilot(wanted)
    side, _, name = key.rpartition(" ")
    if name == "destroy":
        assert end.left == (side,)
        assert end.result != "complete"
    else:
        assert commands.running == set()
    if name in BILLED:
        assert end.result != "complete"
        assert commands.calls.index(f"{side or 'gpu'} destroy") > commands.calls.index(key)
    # Run again until it is complete: a step that failed is repeated, with a new cluster.
    for _ in range(5):
        if commands.pilot(wanted).result == "complete":
            break
    assert commands.running == set()
    assert commands.pilot(wanted) == PilotResult(result="complete")


def test_bench_has_both_clusters_at_the_same_time() -> None:
    commands = FakeCommands()
    seen: list[set[str]] = []
    commands.before = lambda key: seen.append({*commands.running}) if key == "bench" else None
    assert commands.pilot(MEASURED) == PilotResult(result="complete")
    assert seen == [{"trainium", "gpu"}]
    assert commands.calls == [step.key for step in pilot_steps(MEASURED)]


def test_gate_that_is_not_met_does_not_stop_the_pilot() -> None:
    commands = FakeCommands()
    run = commands.run

    def gate_not_met(step: PilotStep, job: str, seconds: float | None) -> StepEnd:
        end = run(step, job, seconds)
        return StepEnd(exit_code=1, output=end.output) if step.name == "bench" else end

    commands.run = gate_not_met
    assert commands.pilot(MEASURED) == PilotResult(result="complete")


def test_failed_observed_job_does_not_stop_the_pilot() -> None:
    commands = FakeCommands(lambda key, _times: int(key == "trainium observe-follow"))
    assert commands.pilot(MEASURED) == PilotResult(result="complete")
    assert "trainium observe-compare" in commands.calls


def test_failed_trainium_side_spends_nothing_on_gpus() -> None:
    commands = FakeCommands(lambda key, _times: int(key == "trainium follow"))
    end = commands.pilot()
    assert (end.result, end.why) == ("stopped", "trainium follow failed with exit code 1")
    assert "gpu deploy" not in commands.calls
    assert commands.calls[-3:] == ["trainium destroy", "trainium audit", "report"]


def test_budget_below_the_cost_of_all_sides_deploys_nothing() -> None:
    commands = FakeCommands(hourly=100)
    end = commands.pilot()
    assert end.result == "stopped"
    assert "8 hours of each cluster cost $1,600.00, and the budget is $1,000.00" in end.why
    assert commands.asked == 0
    assert "trainium deploy" not in commands.calls


def test_unknown_price_spends_nothing() -> None:
    commands = FakeCommands()
    commands.unknown_price_of = "gpu"
    end = commands.pilot()
    assert (end.result, "a price is unknown" in end.why, commands.asked) == ("unknown", True, 0)
    assert "trainium deploy" not in commands.calls


@pytest.mark.parametrize(("hours", "budget", "why"), [(8, 650, "budget"), (2, 1000, "hours")])
def test_cluster_is_deleted_at_the_budget_or_the_hours(hours: int, budget: int, why: str) -> None:
    wanted = PilotFile(plan="p", job="j", budget_usd=budget, hours=hours)
    commands = FakeCommands(hourly=80)
    commands.minutes = {"deploy": 30, "follow": 10_000}
    end = commands.pilot(wanted)
    assert (end.result, end.left) == ("stopped", ())
    assert "did not end in time: hours or budget" in end.why
    assert commands.calls[-3:] == ["trainium destroy", "trainium audit", "report"]
    state = PilotState.from_json(commands.stored)
    assert state.spent(commands.now) <= budget - (40 if why == "budget" else 0)
    assert (commands.now - NOON).total_seconds() <= hours * 3600


def test_cluster_left_for_days_is_deleted_at_once() -> None:
    commands = FakeCommands()

    def kill(key: str) -> None:
        if key == "trainium follow" and commands.now < NOON + timedelta(days=1):
            raise KilledError

    commands.before = kill
    with pytest.raises(KilledError):
        commands.pilot()
    commands.now += timedelta(days=3)
    end = commands.pilot()
    assert (end.result, commands.running) == ("stopped", set())
    assert "trainium follow" not in commands.calls


def test_interruption_between_steps_deletes_the_cluster() -> None:
    commands = FakeCommands()
    interrupted: list[str] = []

    def interrupt(key: str) -> None:
        if key == "trainium nodes" and not interrupted:
            interrupted.append(key)
            raise KeyboardInterrupt

    commands.before = interrupt
    assert commands.pilot().result == "interrupted"
    assert commands.running == set()


@given(
    wanted=st.sampled_from([WANTED, MEASURED]),
    codes=st.dictionaries(
        st.sampled_from([key for _, key in CASES]), st.sampled_from([1, 2, UNKNOWN_CODE, INTERRUPTED_CODE])
    ),
)
def test_no_cluster_is_left_unless_its_deletion_failed(wanted: PilotFile, codes: dict[str, int]) -> None:
    commands = FakeCommands(lambda key, _times: codes.get(key, 0))
    end = commands.pilot(wanted)
    failed_ends = {key.split()[0] for key, code in codes.items() if code and key.split()[-1] in ("destroy", "audit")}
    assert commands.running <= failed_ends
    assert commands.running <= set(end.left)
    if end.result == "complete":
        assert not end.left
    state = PilotState.from_json(commands.stored)
    assert all(stored["state"] != BEGUN for stored in state.steps.values())


def test_state_is_read_back_from_its_json() -> None:
    commands = FakeCommands()
    commands.pilot()
    state = PilotState.from_json(commands.stored)
    assert state.steps["gpu audit"]["state"] == DONE
    assert state.to_json() == commands.stored


def test_state_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(TypeError, match="not a JSON object"):
        PilotState.from_json("5")


REQUIRED = 'plan = "cdk.json"\njob = "plan.json"\nbudget_usd = 5\nhours = 1\n'


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("hours = 1", ["plan is missing", "budget_usd is missing", "it has neither job nor bench"]),
        (
            'budgt_usd = 5\nplan = "plan.json"\nbudget_usd = true\nhours = 0\njob = "none"\nbench = 3\nfail_on = "x"\n',
            [
                "budgt_usd is not a known key; nearest: budget_usd",
                "it has job and bench",
                "plan is 'plan.json'; it must be a cdk.json",
                "budget_usd is True",
                "hours is 0",
                "none does not exist",
                "bench is 3; it must be a text that is not empty",
                "fail_on is 'x'; it must be one of",
            ],
        ),
        (REQUIRED.replace("= 5", "= 0"), ["budget_usd is 0"]),
        (REQUIRED + 'observe = "plan.json"', ["observe requires code: the counters of the job"]),
        (REQUIRED.replace("= 5", "= 1" + "0" * 400), ["budget_usd is 1"]),
        ("plan =", ["is not TOML"]),
        ("plan = " + "[" * 100_000, ["is not TOML"]),
        ("hours = 1" + "0" * 5000, ["is not TOML"]),
    ],
)
def test_pilot_file_is_refused_with_all_its_mistakes(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    (tmp_path / "cdk.json").write_text("{}")
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(TomlFileError) as refused:
        read_pilot_file(text, tmp_path)
    problems = refused.value.problems
    assert len(problems) == len(mistakes)
    for mistake in mistakes:
        assert any(mistake in problem for problem in problems), problems


@pytest.mark.parametrize(("text", "why"), [("{}", "None"), ('{"schema": "x/2"}', "'x/2'")])
def test_state_of_another_schema_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"its schema is {why}, not 'trainium-pilot-state/1'"):
        PilotState.from_json(text)


def test_pilot_without_code_and_baseline_has_fewer_steps() -> None:
    keys = [step.key for step in pilot_steps(PilotFile(plan="p", job="j", budget_usd=1, hours=1))]
    assert keys == [key for key in KEYS if key != "assess" and not key.startswith("gpu")]
