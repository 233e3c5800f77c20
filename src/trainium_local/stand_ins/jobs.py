"""Jobs of a cluster of stand-in nodes: each node's part is a process on this machine, with the rights of the user.

The process runs the node's own program, `trn_job`, with loopback addresses. Other parts of a real node are simulated:
the termination of an instance ends its part of the job, and a job with retries is attempted again on the instances that
replace the terminated ones. Processes of the job receive notices to the whole cluster, such as that of `trn sleep`, and
no other notices.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from trainium_local.environment import HOST, safe_environment
from trainium_local.resources import api
from trainium_local.stand_ins.nodes import is_running
from trainium_userdata.node.trn_job.launch import Launch
from trainium_wire.job import (
    FAILED,
    NODE_LOST,
    STORED_CODES,
    Job,
    Outcome,
    checkpoint_names,
    end_record,
    job_end_record,
    jobs_url,
    resumable_checkpoints,
    start_record,
)
from trainium_wire.job_keys import job_keys
from trainium_wire.keys import CURRENT_JOB_KEY, MEMBERSHIP_KEY
from trainium_wire.membership import Membership, Notice
from trainium_wire.restarts import EndedAttempt, has_progressed, restart_pause

PROGRAM = "trainium_local.stand_ins.job_node"
TIMING = {"poll": 0.2, "log": 0.3, "log_others": 0.3, "report": 1, "results": 60, "refused": 5}
"""Seconds. Real nodes poll less often, because S3 bills each request."""
_POLL_SECONDS = 1
_REPLACED_SECONDS = 120
_GRACE_SECONDS = 60
"""Longer than a job takes to end its processes, from SIGTERM to SIGKILL."""


class StandInJobs:
    """Runs jobs whose nodes are all stand-ins.

    Args:
        is_stand_in: Returns whether an instance ID belongs to a stand-in.
    """

    def __init__(self, is_stand_in: Callable[[str], bool]) -> None:
        self._is_stand_in = is_stand_in

    def handle_event(self, event: Mapping[str, Any]) -> None:
        """Run a new job to its end. Never raises."""
        detail = event["detail"]
        if event["detail-type"] == "Object Created" and detail["object"]["key"] == CURRENT_JOB_KEY:
            self._run(_Bucket(detail["bucket"]["name"], event["region"]))

    def _run(self, bucket: "_Bucket") -> None:
        try:
            spec = json.loads(bucket.read(CURRENT_JOB_KEY))
            ids = self._members(bucket, spec["nodes"])
            if ids:
                end = _run_attempts(bucket, spec, ids, lambda: self._members(bucket, spec["nodes"]))
                bucket.write(job_keys(spec["id"]).end, end)
        except (BotoCoreError, ClientError, ValueError, LookupError, TypeError, OSError) as error:
            print(f"stand-in nodes: the job in {bucket.name} was not run: {error}", flush=True)

    def _members(self, bucket: "_Bucket", nodes: int) -> Sequence[str]:
        """Return the first members of the cluster, or nothing unless the job has enough, all of them stand-ins."""
        members = Membership.from_json(bucket.read(MEMBERSHIP_KEY)).members[:nodes]
        ids = [member.instance_id for member in members]
        return ids if len(ids) == nodes and all(map(self._is_stand_in, ids)) else []


class _Bucket:
    def __init__(self, name: str, region: str) -> None:
        self.name, self.region = name, region

    def read(self, key: str) -> str:
        response = api.call("s3", "GetObject", self.region, {"Bucket": self.name, "Key": key})
        return response["Body"].read().decode()

    def write(self, key: str, content: Mapping[str, Any]) -> None:
        api.call(
            "s3", "PutObject", self.region, {"Bucket": self.name, "Key": key, "Body": json.dumps(content).encode()}
        )

    def written(self, prefix: str) -> dict[str, datetime]:
        """When each object in a folder was written, by its name there."""
        found, following = dict[str, datetime](), dict[str, str]()
        while True:
            arguments = {"Bucket": self.name, "Prefix": prefix, "Delimiter": "/", **following}
            page = api.call("s3", "ListObjectsV2", self.region, arguments)
            found |= {entry["Key"].removeprefix(prefix): entry["LastModified"] for entry in page.get("Contents", [])}
            if not page["IsTruncated"]:
                return found
            following = {"ContinuationToken": page["NextContinuationToken"]}


def _run_attempts(
    bucket: _Bucket, spec: Mapping[str, Any], instance_ids: Sequence[str], members: Callable[[], Sequence[str]]
) -> dict[str, Any]:
    """Run the job's attempts, and return the record of the job's end.

    Args:
        bucket: The bucket of the cluster.
        spec: The record of the job.
        instance_ids: The instances of the first attempt.
        members: Returns the instances for a further attempt.
    """
    job, attempts = Job.from_record(spec), list[EndedAttempt]()
    start = _start(bucket, spec, instance_ids, 1)
    while True:
        number = len(attempts) + 1
        end = _run_attempt(bucket, spec, start)
        outcome = Outcome.from_record(end)
        joined = len(bucket.written(job_keys(job.id).attempt(number).nodes)) == job.nodes
        following = _start(bucket, spec, (), number + 1)
        attempts.append(EndedAttempt(outcome, joined, has_progressed(outcome.result, start, following)))
        is_stopped = "stop.json" in bucket.written(f"{job_keys(job.id).folder}/")
        pause = None if is_stopped else restart_pause(job, attempts)
        if pause is None:
            return job_end_record(end, attempts=number)
        time.sleep(pause)
        instance_ids = _running(bucket, members)
        if not instance_ids:
            return job_end_record(end, attempts=number)
        start = _start(bucket, spec, instance_ids, number + 1)


def _running(bucket: _Bucket, members: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return the members once all of them run, or nothing after _REPLACED_SECONDS.

    Terminated instances are not replaced if their cluster is asleep or deleted, so no group wants any.
    """
    ends = time.monotonic() + _REPLACED_SECONDS
    while time.monotonic() < ends and _are_instances_wanted(bucket.region):
        ids = members()
        if ids and all(is_running(instance_id, bucket.region) for instance_id in ids):
            return ids
        time.sleep(_POLL_SECONDS)
    return []


def _are_instances_wanted(region: str) -> bool:
    groups = api.call("autoscaling", "DescribeAutoScalingGroups", region, {})["AutoScalingGroups"]
    return any(group["DesiredCapacity"] for group in groups)


def _checkpoint(bucket: _Bucket, spec: Mapping[str, Any], job_id: str) -> dict[str, str]:
    """Return what the start of an attempt says of a job's newest complete checkpoint, if there is one."""
    place = urlsplit(spec.get("checkpoints") or jobs_url(bucket.name))
    written = _Bucket(place.netloc, bucket.region).written(job_keys(job_id, place.path.strip("/")).checkpoints)
    names = resumable_checkpoints(checkpoint_names(written))
    if not names:
        return {}
    return {
        "checkpoint": names[-1],
        "checkpoint_job": job_id,
        "checkpoint_saved_at": written[f"{names[-1]}.json"].isoformat(),
    }


def _start(bucket: _Bucket, spec: Mapping[str, Any], instance_ids: Sequence[str], number: int) -> dict[str, Any]:
    """Return the record of an attempt's start, from the checkpoints of now."""
    owners = [spec["id"] if number > 1 else "", spec.get("resume_from") or ""]
    found = (_checkpoint(bucket, spec, job_id) for job_id in owners if job_id)
    return start_record(
        number,
        dict.fromkeys(instance_ids, HOST),
        **next(filter(None, found), {}),
        seconds_left=spec.get("time_limit_seconds"),
    )


def _run_attempt(bucket: _Bucket, spec: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """Run one attempt, and return the record of its end."""
    keys = job_keys(spec["id"]).attempt(start["attempt"])
    instance_ids = [node["instance_id"] for node in start["nodes"]]
    bucket.write(keys.start, start)
    launch_content = {"url": jobs_url(bucket.name), "spec": spec, "venv": sys.prefix, "timing": TIMING}
    launch_content |= {key: start[key] for key in ("attempt", "nodes", "resume_from", "resume_job", "seconds_left")}
    folder = Path(tempfile.mkdtemp(prefix="trn-stand-in-job-"))
    parts = [_Part(folder, launch_content, rank, instance_id) for rank, instance_id in enumerate(instance_ids)]
    for part in parts:
        part.wait(bucket, keys.notice)
    if not any(part.lost_results for part in parts):
        shutil.rmtree(folder, ignore_errors=True)
    if "end.json" not in bucket.written(f"{keys.folder}/"):
        # All parts ended before they could report.
        bucket.write(
            keys.end, unreported_end([0 if part.was_ended else part.exit_code for part in parts], instance_ids[0])
        )
    return json.loads(bucket.read(keys.end))


def unreported_end(exit_codes: Sequence[int], instance_id: str) -> dict[str, Any]:
    """Return the record of the end of an attempt that no part reported.

    Args:
        exit_codes: Exit codes of the parts; 0 for one that ended with its instance.
        instance_id: The first instance.
    """
    result, reason = NODE_LOST, f"{instance_id} was terminated"
    if code := next(filter(None, exit_codes), 0):
        result = FAILED
        reason = f"the job's program ended with exit code {code}: see server.log, which `trn local status` names"
    return end_record(result, reason, instance_id=instance_id, node=0)


def _notices(bucket: _Bucket) -> Sequence[Notice]:
    """Return the notices of the cluster that are about the next minutes, as nodes read them."""
    with contextlib.suppress(ClientError, ValueError, LookupError, TypeError):
        notices = Membership.from_json(bucket.read(MEMBERSHIP_KEY)).notices
        soon = datetime.now(UTC) + timedelta(seconds=Launch._field_defaults["notice_seconds"])
        return [notice for notice in notices if datetime.fromisoformat(notice.at) < soon]
    return []


class _Part:
    """The part of a job on one stand-in node.

    Attributes:
        was_ended: Whether it was ended because its instance no longer runs.
    """

    def __init__(self, folder: Path, launch_content: Mapping[str, Any], rank: int, instance_id: str) -> None:
        self._instance_id, self._was_cut_off = instance_id, False
        self.was_ended = False
        own = folder / f"node-{rank}"
        own.mkdir()
        launch = folder / f"node-{rank}.json"
        # A login shell would load this machine's profile instead of the programs of this environment, after those of
        # the environment that the attempt makes for a setup.
        path = f"{own / 'venv/bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        spec = launch_content["spec"]
        spec = {**spec, "environment": {"PATH": path, **spec.get("environment", {})}}
        launch.write_text(json.dumps({**launch_content, "spec": spec, "rank": rank, "folder": str(own)}))
        # When the embedded AWS ends, the part's standard input closes, and so the part ends.
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(launch)],
            env=safe_environment(os.environ, api.connection()),
            stdin=subprocess.PIPE,
        )

    def wait(self, bucket: _Bucket, notice_key: str) -> None:
        """Wait for the part's end, and write notices of the cluster to `notice_key` for the job.

        If the instance no longer runs, end the part as a node that shuts down does.
        """
        while not self._is_over(_POLL_SECONDS):
            for notice in _notices(bucket):
                bucket.write(notice_key, {**asdict(notice), "node": 0})
            if not is_running(self._instance_id, bucket.region):
                self.was_ended = True
                self._process.terminate()
                if not self._is_over(_GRACE_SECONDS):
                    self._process.kill()
                    self._was_cut_off = True

    @property
    def exit_code(self) -> int:
        """The exit code of the part, which has ended."""
        return self._process.returncode

    @property
    def lost_results(self) -> bool:
        """Whether results are, or may be, only in the folder of this part, which has ended."""
        return self._process.returncode not in STORED_CODES and not self._was_cut_off

    def _is_over(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
