"""Runs the part of this pod in a job: python3 -m trn_pod.

The pod's environment has the job, its bucket, the index of the pod and the number of restarts. Exit codes: 0 if this
pod's part is complete; 75 if JobSet should start all pods again; 1 if the job has failed. Only the first pod decides
for the job. The others end with 0 also after a failure, because a failed pod ends the pods that still store results.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from trainium_wire.job import NODE_LOST, RESTART_CODE, Outcome
from trn_job.attempt import NodeAttempt
from trn_job.launch import Launch, Timing
from trn_job.preparation import patiently
from trn_job.scheduled_attempts import BegunElsewhereError, OverError, ScheduledAttempts
from trn_node import files, job_cache
from trn_node.check import CONTAINER
from trn_node.objects import Objects
from trn_node.secret_values import secret_value

from .identity import PodIdentity
from .pods import Pods

RETRIES = 3
"""Retries of each request to S3, with pauses of seven seconds in total. Callers repeat important requests later."""
POLL_SECONDS = 2.5
STORE_SECONDS, LOST_SECONDS = 1200.0, 60.0
"""How long the first pod waits until the others have stored their results, and after the loss of a node."""

Result = TypeVar("Result")


def main() -> int:
    # Until NodeAttempt handles it: Linux ignores SIGTERM in the first process of a container without a handler.
    signal.signal(signal.SIGTERM, end_early)
    variables = os.environ
    place = Path(variables["TRN_FOLDER"])
    write_node_files(place)
    rank, wait_seconds = int(variables["JOB_COMPLETION_INDEX"]), float(variables["TRN_WAIT_SECONDS"])
    submission = variables["TRN_JOBSET_UID"]
    try:
        identity = PodIdentity(retries=RETRIES)
        s3, job, url = Objects(identity, retries=RETRIES), variables["TRN_JOB"], variables["TRN_JOBS_URL"]
        attempts = persistently(
            lambda: ScheduledAttempts(job, s3, url, scheduler="JobSet", submission=submission), wait_seconds
        )
        pods = Pods(attempts, s3, start=f"{submission}-{variables['TRN_RESTARTS']}", rank=rank, say=say)
        start = pods.join(address=variables["TRN_POD_ADDRESS"], node=variables["TRN_NODE_NAME"], seconds=wait_seconds)
        launch = new_launch(attempts, start, rank, place)
        attempt = NodeAttempt(launch, attempts.store, lambda arn: secret_value(arn, identity), why_ended)
        if attempts.spec.compile_cache and launch.compile_cache is None:
            attempt.log.say("no compile cache: python3 of the image has no framework with a compile cache")
        attempt.run()
        shutil.rmtree(launch.folder, ignore_errors=True)
        return 0 if rank else conclude(attempts, attempt, launch.attempt)
    except OverError as over:
        say(f"job {variables['TRN_JOB']} is over: {over}")
        return 1
    except (BegunElsewhereError, OSError, ValueError, LookupError) as error:
        say(f"{type(error).__name__}: {error}")
        return 1


def end_early(*_: object) -> None:
    """Kubernetes ends this pod before an attempt, for example because Kueue suspends the job: that is no failure."""
    os._exit(RESTART_CODE)  # Python ignores SystemExit in a destructor, for example of an HTTP response.


def why_ended() -> tuple[str, str]:
    """Why this pod is ended from outside, as result and reason."""
    return NODE_LOST, "Kubernetes ended a pod: its node ends, or its JobSet was suspended or deleted"


def say(text: str) -> None:
    print(f"trn_pod: {text}", file=sys.stderr, flush=True)


def write_node_files(place: Path) -> None:
    """Write the files that the packages of nodes read, below a root folder of this program."""
    variables = os.environ
    os.environ["ROOT"] = str(place / "root")
    locations = {
        "TRN_REGION": variables["AWS_REGION"],
        "TRN_CACHE_URL": variables["TRN_CACHE_URL"],
        "TRN_CACHE_ACCESS": variables.get("TRN_CACHE_ACCESS", ""),
    }
    files.write(files.LOCATIONS, "".join(f"{name}={value}\n" for name, value in locations.items()))
    plan = {
        "scope": CONTAINER,
        "instance_type": variables["TRN_INSTANCE_TYPE"],
        "logical_neuroncore_config": int(variables["TRN_LNC"]),
    }
    files.write(files.PLAN, json.dumps(plan))
    # The driver's error counters: all containers of a node see its /sys.
    with contextlib.suppress(FileExistsError):
        files.path("sys").symlink_to("/sys")


def new_launch(attempts: ScheduledAttempts, start: dict[str, Any], rank: int, place: Path) -> Launch:
    spec, number = attempts.spec, int(start["attempt"])
    folder = place / f"{spec.id}-{number}"
    folder.mkdir(mode=0o700, parents=True)
    return Launch(
        url=attempts.url,
        spec=spec,
        attempt=number,
        rank=rank,
        nodes=start["nodes"],
        folder=str(folder),
        resume_from=start["resume_from"],
        resume_job=start["resume_job"],
        seconds_left=start["seconds_left"],
        compile_cache=job_cache.compile_cache(None) if spec.compile_cache else None,
        in_container=True,
        timing=Timing(terminated=float(os.environ["TRN_GRACE_SECONDS"])),
    )


def conclude(attempts: ScheduledAttempts, attempt: NodeAttempt, number: int) -> int:
    """End the job or have JobSet start it again, once the other pods have stored their results.

    Raises:
        OSError: S3 refuses a request, or is unavailable for long.
    """
    end = persistently(lambda: attempts.store.read(attempts.attempt(number).end)) or {}
    if Outcome.from_record(end).is_success:
        persistently(lambda: attempts.close(number, end))
        return 0
    restarts = persistently(attempts.is_retried)
    deadline = time.monotonic() + (LOST_SECONDS if end.get("result") == NODE_LOST else STORE_SECONDS)
    # After SIGTERM, Kubernetes also ends the other pods, and kills this one soon.
    while (
        not attempt.terminated
        and time.monotonic() < deadline
        and persistently(lambda: attempts.count_done(number)) < attempts.spec.nodes
    ):
        time.sleep(POLL_SECONDS)
    if restarts:
        print(f"trn_pod: attempt {number}: {end.get('result')} {end.get('reason')}; starting again", flush=True)
        return RESTART_CODE
    persistently(lambda: attempts.close(number, end))
    print(f"trn_pod: {end.get('result')} {end.get('reason')}", flush=True)
    return 1


def persistently(work: Callable[[], Result], seconds: float = Timing().results) -> Result:
    """Repeat the work while S3 is unavailable, for a limited time."""
    return patiently(work, seconds, say, lambda: False)


if __name__ == "__main__":
    sys.exit(main())
