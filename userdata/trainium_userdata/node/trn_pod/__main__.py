"""Runs the part of this pod in a job: python3 -m trn_pod.

The pod's environment has the job, its bucket, the index of the pod and the number of restarts. Exit codes: 0 if this
pod's part is complete; 75 if JobSet should start all pods again; 1 if the job has failed. Only the first pod decides
for the job. The others end with 0 also after a failure, because a failed pod ends the pods that still store results.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from trainium_wire.job import FAILED, NODE_LOST, RESTART_CODE, RESULTS_LOST, SUCCEEDED, Outcome
from trn_job.attempt import NodeAttempt
from trn_job.launch import Launch, Timing
from trn_job.scheduled_attempts import OverError, ScheduledAttempts
from trn_node import files
from trn_node.objects import Objects
from trn_node.secret_values import secret_value

from .identity import PodIdentity
from .pods import Pods

RETRIES = 3
"""Retries of each request to S3, with pauses of seven seconds in total. Callers repeat important requests later."""
POLL_SECONDS = 2.5
STORE_SECONDS, LOST_SECONDS = 1200.0, 60.0
"""How long the first pod waits until the others have stored their results, and after the loss of a node."""
FINAL = ("ended", FAILED, SUCCEEDED, RESULTS_LOST)
"""States of a pod that has stored its results."""
STACKS = {"torch_xla": "xla", "torch_neuronx": "native", "jax": "jax"}
"""The stack of the compile cache by the package that the image has, the first one that is found."""

Result = TypeVar("Result")


def main() -> int:
    # Until NodeAttempt handles it: Linux ignores SIGTERM in the first process of a container without a handler.
    signal.signal(signal.SIGTERM, end_early)
    variables = os.environ
    place = Path(variables["TRN_FOLDER"])
    os.environ["ROOT"] = str(place / "root")
    files.write(files.LOCATIONS, f"TRN_REGION={variables['AWS_REGION']}\n")
    rank, restarts = int(variables["JOB_COMPLETION_INDEX"]), int(variables["TRN_RESTARTS"])
    identity = PodIdentity(retries=RETRIES)
    s3 = Objects(identity, retries=RETRIES)
    try:
        attempts = ScheduledAttempts(
            variables["TRN_JOB"], s3, variables["TRN_JOBS_URL"], scheduler="JobSet", restarts=restarts
        )
        start_name = f"{variables['TRN_JOBSET']}-{restarts}"
        pods = Pods(attempts, s3, start=start_name, rank=rank, seconds=float(variables["TRN_WAIT_SECONDS"]))
        start = pods.join(address=variables["TRN_POD_ADDRESS"], node=variables["TRN_NODE_NAME"])
        launch = new_launch(attempts, start, rank, place)
        NodeAttempt(launch, attempts.store, lambda arn: secret_value(arn, identity), why_ended).run()
        shutil.rmtree(launch.folder, ignore_errors=True)
        return 0 if rank else conclude(attempts, launch.attempt)
    except OverError as over:
        print(f"trn_pod: job {variables['TRN_JOB']} is over: {over}", file=sys.stderr)
        return 1
    except (OSError, ValueError, LookupError) as error:
        print(f"trn_pod: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def end_early(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)


def why_ended() -> tuple[str, str]:
    """Why this pod is ended from outside, as result and reason."""
    return NODE_LOST, "Kubernetes ended a pod: its node ends, or its JobSet was deleted"


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
        compile_cache=compile_cache(place) if spec.compile_cache else None,
        in_container=True,
        timing=Timing(terminated=float(os.environ["TRN_GRACE_SECONDS"])),
    )


def compile_cache(place: Path) -> dict[str, Any] | None:
    """The compile cache for the framework of the image; None without one."""
    url = os.environ.get("TRN_CACHE_URL")
    stack = next((stack for package, stack in STACKS.items() if importlib.util.find_spec(package)), None)
    if not url or stack is None:
        return None
    return {
        "url": url,
        "folder": str(place / "compile-cache"),
        "stack": stack,
        "venv": sys.prefix,
        "instance_type": os.environ["TRN_INSTANCE_TYPE"],
        "lnc": int(os.environ["TRN_LNC"]),
        "read_only": os.environ.get("TRN_CACHE_ACCESS") == "read",
    }


def conclude(attempts: ScheduledAttempts, number: int) -> int:
    """End the job or have JobSet start it again, once the other pods have stored their results."""
    end = persistently(lambda: attempts.store.read(attempts.attempt(number).end)) or {}
    if Outcome.from_record(end).is_success:
        persistently(lambda: attempts.close(number, end))
        return 0
    restarts = persistently(attempts.is_retried)
    deadline = time.monotonic() + (LOST_SECONDS if end.get("result") == NODE_LOST else STORE_SECONDS)
    while time.monotonic() < deadline and not persistently(lambda: all_stored(attempts, number)):
        time.sleep(POLL_SECONDS)
    if restarts:
        print(f"trn_pod: attempt {number}: {end.get('result')} {end.get('reason')}; starting again", flush=True)
        return RESTART_CODE
    persistently(lambda: attempts.close(number, end))
    print(f"trn_pod: {end.get('result')} {end.get('reason')}", flush=True)
    return 1


def all_stored(attempts: ScheduledAttempts, number: int) -> bool:
    """Whether every pod has stored the results of an attempt."""
    keys = attempts.attempt(number)
    found = (attempts.store.read(keys.node(rank)) or {} for rank in range(attempts.spec.nodes))
    return all(each.get("state") in FINAL and "results" in each.get("phases", {}) for each in found)


def persistently(work: Callable[[], Result]) -> Result:
    """Repeat the work until S3 answers."""
    while True:
        try:
            return work()
        except OSError as error:
            print(f"trn_pod: {error}", file=sys.stderr, flush=True)
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
