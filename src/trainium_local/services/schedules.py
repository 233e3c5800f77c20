"""EventBridge Scheduler: runs schedules, which moto only stores, by the clock of the embedded AWS.

Supports rates and one-time schedules in UTC that invoke functions, and the scheduled time in their input. If the clock
moves forward, a due schedule runs once, however often it was due.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.scheduler.models import scheduler_backends

from trainium_local import clock
from trainium_local.permissions import enforcement
from trainium_local.services import lambda_process

_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_RATE = re.compile(r"rate\(([0-9]+) (minute|hour|day)s?\)")
_AT = re.compile(r"at\(([0-9T:-]+)\)")
_SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""Keyword in the input of a target (EventBridge Scheduler User Guide, "Adding context attributes")."""
_POLL_SECONDS = 1.0

_one_at_a_time = threading.Lock()


def start() -> None:
    """Run schedules as they become due."""
    threading.Thread(target=_run_forever, daemon=True, name="schedules").start()


def run_due() -> list[str]:
    """Run every due schedule, wait for all of them, and return their names."""
    with _one_at_a_time:
        due = list(_due(clock.now()))
        runs = [threading.Thread(target=_run, args=(schedule,), daemon=True) for schedule in due]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    return [schedule.name for schedule in due]


def next_run(expression: str, last: datetime) -> datetime | None:
    """Return the next run of a schedule after its last run, or None for an unsupported expression."""
    if rate := _RATE.fullmatch(expression):
        return last + int(rate[1]) * _UNITS[rate[2]]
    if at := _AT.fullmatch(expression):
        moment = datetime.fromisoformat(at[1]).replace(tzinfo=UTC)
        return moment if moment > last else datetime.max.replace(tzinfo=UTC)
    return None


def _run_forever() -> None:
    while True:
        time.sleep(_POLL_SECONDS)
        run_due()


def _due(now: datetime) -> Iterator[Any]:
    for schedule in _enabled():
        state = vars(schedule)
        following = next_run(schedule.schedule_expression, state.setdefault("last_run", now))
        if following is None and not state.get("warned"):
            state["warned"] = True
            unsupported = f"{schedule.schedule_expression} is not supported, only rate and at expressions"
            print(f"schedule {schedule.name}: {unsupported}", flush=True)
        if following is not None and following <= now:
            state["last_run"] = _last_due(schedule.schedule_expression, following, now)
            yield schedule


def _last_due(expression: str, due: datetime, now: datetime) -> datetime:
    """The last time until now at which a schedule was due."""
    rate = _RATE.fullmatch(expression)
    return due if rate is None else now - (now - due) % (int(rate[1]) * _UNITS[rate[2]])


def _enabled() -> Iterator[Any]:
    backends: Any = scheduler_backends
    for account in list(backends.values()):
        for backend in list(account.values()):
            for group in list(backend.schedule_groups.values()):
                yield from (schedule for schedule in list(group.schedules.values()) if schedule.state == "ENABLED")


def _run(schedule: Any) -> None:
    arn, caller = schedule.target["Arn"], f"schedule {schedule.name}"
    if ":lambda:" not in arn:
        print(f"{caller}: the embedded AWS invokes Lambda functions only, not {arn}", flush=True)
        return
    scheduled = f"{vars(schedule)['last_run']:%Y-%m-%dT%H:%M:%SZ}"
    event = json.loads((schedule.target.get("Input") or "{}").replace(_SCHEDULED_TIME, scheduled))
    lambda_process.call(arn, event, caller=caller, check=lambda _: enforcement.refuse_schedule(schedule, arn))
