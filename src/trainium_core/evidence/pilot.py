"""Runs the steps of a pilot: free checks first, then, after confirmation, billed clusters, which it deletes at the end.

It also deletes the clusters if a step fails, if the time or the budget is used up, and on Ctrl-C.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from trainium_core.evidence.pilot_file import PilotFile, PilotStep, pilot_steps
from trainium_wire.formats import time_text

SCHEMA = "trainium-pilot-state/1"
DONE, FAILED, BEGUN = "done", "failed", "begun"
UNKNOWN_CODE, INTERRUPTED_CODE = 3, 130
END_HOURS = 0.5
"""Hours whose cost is reserved in the budget for deleting the clusters of a group."""

_HOUR = 3600
Result = Literal["complete", "stopped", "unknown", "declined", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class StepEnd:
    """How a command ended.

    Attributes:
        output: The standard output of the command, if it was captured.
        late: Whether the command exceeded its time limit.
    """

    exit_code: int
    output: str = ""
    late: bool = False


@dataclass(kw_only=True)
class PilotState:
    """The stored state of a pilot.

    Attributes:
        digest: The digest of the pilot's file and of the plans, job files and bench file that it names.
        steps: State, times and exit code of each step, by its key.
        billed: Start and end of each period in which a cluster was billed, by side. The end is None while it is billed.
        hourly: Known price of each cluster per hour, in US dollars, by side.
        jobs: Job IDs by the name of the job: its side, or "observed".
    """

    digest: str
    steps: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    billed: dict[str, list[list[str | None]]] = field(default_factory=dict[str, list[list[str | None]]])
    hourly: dict[str, float] = field(default_factory=dict[str, float])
    jobs: dict[str, str] = field(default_factory=dict[str, str])

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **vars(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "PilotState":
        """The state in a text.

        Raises:
            ValueError: The text is not JSON, or its schema is not SCHEMA.
            TypeError: The document is not an object, has unknown fields, or has no digest.
        """
        raw = json.loads(text)
        if not isinstance(raw, dict):
            raise TypeError("it is not a JSON object")
        stored = cast("dict[str, Any]", raw)
        schema = stored.pop("schema", None)
        if schema != SCHEMA:
            raise ValueError(f"its schema is {schema!r}, not {SCHEMA!r}")
        return cls(**stored)

    def is_done(self, step: PilotStep) -> bool:
        return self.steps.get(step.key, {}).get("state") == DONE

    def spent(self, now: datetime) -> float:
        """US dollars by the estimated price per hour. A cluster that was not deleted is billed until now."""
        total = 0.0
        for side, times in self.billed.items():
            for begin, end in times:
                seconds = ((_time(end) if end else now) - _time(str(begin))).total_seconds()
                total += max(0.0, seconds) / _HOUR * self.hourly.get(side, 0.0)
        return total

    def is_billed(self, side: str) -> bool:
        """Whether the deployment of a cluster has begun, and its deletion is not complete."""
        return bool(self.billed.get(side)) and self.billed[side][-1][1] is None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The effects of a pilot. After KeyboardInterrupt, or exit code 130 of a step, the pilot deletes its clusters.

    Attributes:
        run: Runs a step. Arguments: the step, the ID of its job (may be empty), and a time limit in seconds or None.
        save: Stores the state and, if a step is given, its output.
        confirm: Returns whether money may be spent. Called before the deployment of each group of sides.
        say: Shows a line.
        now: Returns the time.
    """

    run: Callable[[PilotStep, str, float | None], StepEnd]
    save: Callable[[PilotState, PilotStep | None, str], None]
    confirm: Callable[[], bool]
    say: Callable[[str], None]
    now: Callable[[], datetime]


@dataclass(frozen=True, kw_only=True)
class PilotResult:
    """How the pilot ended.

    Attributes:
        why: Why it stopped; empty if it is complete.
        left: Sides whose cluster may still be billed.
    """

    result: Result
    why: str = ""
    left: tuple[str, ...] = ()


class _StopError(Exception):
    def __init__(self, result: Result, why: str) -> None:
        super().__init__(why)
        self.result: Result = result
        self.why = why


class PilotRun:
    """A pilot and its state. `run` continues it where it stopped."""

    def __init__(self, pilot: PilotFile, state: PilotState, outside: Outside) -> None:
        self._pilot, self._state, self._outside = pilot, state, outside
        self._steps = pilot_steps(pilot)

    def run(self) -> PilotResult:
        """Run the steps that are not done, then always the report. A failure or Ctrl-C also deletes billed clusters."""
        stop: _StopError | None = None
        try:
            self._run_reads()
            for sides in self._pilot.groups:
                self._run_group(sides)
        except _StopError as error:
            stop = error
        except KeyboardInterrupt:
            stop = _StopError("interrupted", "interrupted")
        for step in self._steps_with("report"):
            self._execute(step, None)
        left = tuple(side for side in self._pilot.sides if self._state.is_billed(side))
        if stop is None:
            return PilotResult(result="complete", left=left)
        return PilotResult(result=stop.result, why=stop.why, left=left)

    def _steps_with(self, *kinds: str, sides: Sequence[str] | None = None) -> Sequence[PilotStep]:
        """The steps of some sides, and those of all sides together."""
        wanted = None if sides is None else (*sides, "")
        return [step for step in self._steps if step.kind in kinds and (wanted is None or step.side in wanted)]

    def _run_reads(self) -> None:
        """Run the free steps. Raises _StopError if one fails, or if the budget does not cover all sides."""
        for step in self._steps_with("read"):
            if not self._state.is_done(step):
                self._require(step, None)
        needed = sum(self._state.hourly[side] * self._pilot.hours for side in self._pilot.sides)
        if needed > self._pilot.budget_usd:
            why = f"{self._pilot.hours} hours of each cluster cost ${needed:,.2f}, and the budget is "
            why += f"${self._pilot.budget_usd:,.2f}: lower hours, or raise budget_usd"
            raise _StopError("stopped", why)

    def _run_group(self, sides: Sequence[str]) -> None:
        """Deploy clusters, run their jobs or bench, and delete them.

        Args:
            sides: The sides that are billed at the same time.

        Raises:
            _StopError: The deployment was not confirmed, a step failed or was interrupted, time or budget is used up,
                or it is unknown whether all resources were deleted. Once confirmed, deletion was attempted.
        """
        steps = self._steps_with("billed", "evidence", "end", sides=sides)
        if all(self._state.is_done(step) for step in steps if step.kind != "evidence"):
            return
        if not any(map(self._state.is_billed, sides)):
            # The clusters were deleted before their steps were done, or never deployed: start again.
            for step in steps:
                self._state.steps.pop(step.key, None)
                self._state.jobs.pop(step.job, None)
            if not self._outside.confirm():
                raise _StopError("declined", "not confirmed")
            for side in sides:
                self._state.billed.setdefault(side, []).append([time_text(self._outside.now()), None])
            self._save()
        stop: _StopError | None = None
        billed = self._steps_with("billed", sides=sides)
        is_ending = any(step.key in self._state.steps for step in self._steps_with("end", sides=sides))
        try:
            if is_ending and not all(map(self._state.is_done, billed)):
                raise _StopError("stopped", f"the deletion of {_named(sides)} began before all steps were done")
            for step in billed:
                if not self._state.is_done(step):
                    self._require(step, self._seconds_left(sides))
        except _StopError as error:
            stop = error
        except KeyboardInterrupt:
            stop = _StopError("interrupted", "interrupted")
        if stop:
            self._outside.say(f"{stop.why}: deleting what is billed.")
        self._end_group(sides, stop)

    def _end_group(self, sides: Sequence[str], stop: _StopError | None) -> None:
        """Store the results, and delete the clusters. Raises `stop`, or its own _StopError."""
        try:
            for step in self._steps_with("evidence", sides=sides):
                if stop and stop.result == "interrupted":
                    break
                if not self._state.is_done(step) and (step.job in self._state.jobs or "{job}" not in step.arguments):
                    self._execute(step, None)
                    if self._state.steps[step.key]["exit_code"] == INTERRUPTED_CODE:
                        stop = _StopError("interrupted", f"{step.key} was interrupted")
        except KeyboardInterrupt:
            stop = _StopError("interrupted", "interrupted")
        for side in filter(self._state.is_billed, sides):
            ended = [self._execute(step, None) for step in self._steps_with("end", sides=(side,))]
            if all(ended):
                self._state.billed[side][-1][1] = time_text(self._outside.now())
                self._save()
            elif stop is None:
                stop = _StopError("unknown", f"unknown whether all resources of {_named((side,))} were deleted")
        if stop:
            raise stop

    def _seconds_left(self, sides: Sequence[str]) -> float:
        """The seconds until the deletion of the clusters must begin. Raises _StopError if none are left."""
        now = self._outside.now()
        begun = min(_time(str(self._state.billed[side][-1][0])) for side in sides)
        by_hours = self._pilot.hours * _HOUR - (now - begun).total_seconds()
        hourly = sum(self._state.hourly[side] for side in sides)
        by_budget = (
            ((self._pilot.budget_usd - self._state.spent(now)) / hourly - END_HOURS) * _HOUR if hourly else by_hours
        )
        left = min(by_hours, by_budget)
        if left <= 0:
            raise _StopError("stopped", self._over(sides, budget=by_budget < by_hours))
        return left

    def _over(self, sides: Sequence[str], *, budget: bool) -> str:
        if budget:
            return f"the budget of ${self._pilot.budget_usd:,.2f} is used up, except for the part reserved for deletion"
        return f"the {self._pilot.hours} hours of {_named(sides)} are over"

    def _require(self, step: PilotStep, seconds: float | None) -> None:
        """Run a step. Raises _StopError if it fails."""
        if self._adopt(step) or self._execute(step, seconds):
            return
        stored = self._state.steps[step.key]
        code = stored.get("exit_code")
        if stored.get("why"):
            raise _StopError("unknown" if step.name == "estimate" else "stopped", f"{step.key}: {stored['why']}")
        if stored.get("late"):
            raise _StopError("stopped", f"{step.key} did not end in time: hours or budget are used up")
        if code == INTERRUPTED_CODE:
            raise _StopError("interrupted", f"{step.key} was interrupted")
        result: Result = "unknown" if code == UNKNOWN_CODE else "stopped"
        raise _StopError(result, f"{step.key} failed with exit code {code}")

    def _adopt(self, step: PilotStep) -> bool:
        """Use the job that an earlier process started before it was killed. Returns whether one was found."""
        before = self._state.steps.get(step.key, {})
        if not step.starts or before.get("state") != BEGUN:
            return False
        listing = PilotStep(
            name="jobs", kind="read", side=step.side, arguments=("jobs", "--json", "{plan}"), writes="", passes=(0,)
        )
        end = self._outside.run(listing, "", None)
        if end.exit_code != 0:
            raise _StopError("unknown", f"unknown whether the job of {_named((step.side,))} was started")
        begun = str(before["began"])
        started = [row["job"] for row in json.loads(end.output) if row["job"]["submitted_at"] >= begun]
        if not started:
            return False
        self._state.jobs[step.job] = started[0]["id"]
        before.update(state=DONE, exit_code=0, ended=time_text(self._outside.now()))
        self._save()
        return True

    def _execute(self, step: PilotStep, seconds: float | None) -> bool:
        """Run a step, and store how it ended. Returns whether it passed."""
        began = time_text(self._outside.now())
        self._state.steps[step.key] = {"state": BEGUN, "began": began}
        self._save()
        self._outside.say(f"{step.key}: trn {step.arguments[0]}")
        end = self._run(step, seconds)
        for _ in range(step.tries - 1):
            if end.exit_code != UNKNOWN_CODE or end.late:
                break
            end = self._run(step, seconds)
        passed = end.exit_code in step.passes and not end.late
        why = self._learn(step, end.output) if passed else ""
        self._state.steps[step.key] = {
            "state": DONE if passed and not why else FAILED,
            "began": began,
            "ended": time_text(self._outside.now()),
            "exit_code": end.exit_code,
            **({"late": True} if end.late else {}),
            **({"why": why} if why else {}),
        }
        self._outside.save(self._state, step, end.output)
        return passed and not why

    def _run(self, step: PilotStep, seconds: float | None) -> StepEnd:
        return self._outside.run(step, self._state.jobs.get(step.job, ""), seconds)

    def _learn(self, step: PilotStep, output: str) -> str:
        """Store the price per hour of an estimate or the ID of a started job, and check the output of `trn bench`.

        Returns:
            The problem with the output; empty if there is none.
        """
        try:
            if step.name == "estimate":
                hourly = hourly_usd(json.loads(output))
                if hourly is None:
                    return "a price is unknown: add it to the file of trn:prices, see `trn estimate`"
                self._state.hourly[step.side] = hourly
            if step.starts:
                self._state.jobs[step.job] = json.loads(output)["job"]["id"]
            if step.name == "bench" and "records" not in json.loads(output):
                return "no results were written: a job failed, or its state is unknown"
        except (ValueError, LookupError, TypeError):
            return "its output is not the JSON of this version"
        return ""

    def _save(self) -> None:
        self._outside.save(self._state, None, "")


def _named(sides: Sequence[str]) -> str:
    return f"the {' and '.join(sides)} side{'s' if len(sides) > 1 else ''}"


def hourly_usd(estimate: Mapping[str, Any]) -> float | None:
    """The price per hour in the JSON of `trn estimate`; None if a price is unknown."""
    total = estimate["totals"]["running_hour"]
    return None if total["unknown_prices"] else float(total["usd_at_least"])
