"""A cluster of proven nodes without a deployment, and its jobs: the lab writes what keeper and command line would."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from lab.node import Node
from lab.site import BUCKET, Site
from lab.waiting import wait_for
from trainium_core.naming import CURRENT_JOB_KEY, JOBS_PREFIX
from trainium_runtime.naming import ROSTER_KEY
from trainium_runtime.roster import Roster

UNIT = "trn-job.service"
SPEC = {
    "format": 1,
    "processes_per_node": 1,
    "setup": None,
    "environment": {},
    "checkpoint_seconds": 1,
    "resume_from": None,
    "retries": 0,
    "retry_on_exit_codes": [],
    "retry_on_hang": False,
    "hang_seconds": None,
    "time_limit_seconds": None,
}


class JobCluster:
    """The nodes of a site in the order of ranks. Used by one test at a time: there is one job."""

    def __init__(self, site: Site, count: int) -> None:
        self._site = site
        self._s3 = site.lab.client("s3")
        self.nodes = [self._proven_node() for _ in range(count)]
        self.write_roster()

    def write_roster(self) -> None:
        """As the keeper does once all nodes are proven."""
        roster = Roster.of({node.instance.instance_id: node.instance.address for node in self.nodes})
        self._put(ROSTER_KEY, roster.to_json().encode())
        ids = [node.instance.instance_id for node in self.nodes]
        assert ids == sorted(ids)

    def replace(self, rank: int) -> Node:
        """Put a new node in the place of one that is gone, as Auto Scaling and the keeper do; it gets the last rank."""
        self._site.lab.remove(self.nodes.pop(rank))
        self.nodes.append(self._proven_node())
        self.write_roster()
        return self.nodes[-1]

    def submit(self, job: str, command: str, files: Mapping[str, str], **changes: Any) -> None:
        """Give the nodes a job."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        self._put(f"{JOBS_PREFIX}/{job}/source.tar.gz", packed.getvalue())
        spec = {**SPEC, "id": job, "name": job, "nodes": len(self.nodes), "command": command, **changes}
        self._put(CURRENT_JOB_KEY, json.dumps(spec).encode())

    def put(self, job: str, key: str, content: Mapping[str, Any]) -> None:
        self._put(f"{JOBS_PREFIX}/{job}/{key}", json.dumps(content).encode())

    def content(self, job: str, key: str) -> dict[str, Any] | None:
        """An object of a job; None while there is none."""
        text = self._get(f"{JOBS_PREFIX}/{job}/{key}")
        return None if text is None else json.loads(text)

    def log(self, job: str, rank: int, attempt: int = 1) -> str:
        return "".join(self._texts(f"{JOBS_PREFIX}/{job}/attempts/{attempt}/logs/node-{rank}/"))

    def output(self, job: str, name: str) -> str | None:
        return self._get(f"{JOBS_PREFIX}/{job}/outputs/{name}")

    def end_of(self, job: str, *, seconds: float = 120) -> dict[str, Any]:
        """How the job ended, once it has."""
        return wait_for(f"the end of {job}", lambda: self.content(job, "end.json"), seconds=seconds)

    def processes(self, rank: int) -> Sequence[str]:
        """The command lines of the job's processes on a node, with their user."""
        listed = self.nodes[rank].execute("ps", "-eo", "user:20,unit:40,args").splitlines()
        return [line for line in listed if UNIT in line]

    def close(self) -> None:
        for node in self.nodes:
            self._site.lab.remove(node)
        self._s3.delete_object(Bucket=BUCKET, Key=ROSTER_KEY)
        self._s3.delete_object(Bucket=BUCKET, Key=CURRENT_JOB_KEY)

    def _proven_node(self) -> Node:
        node = self._site.node()
        node.power_on()
        outcome = self._site.outcome(node)
        assert outcome.verdict.state == "ready", outcome
        return node

    def _texts(self, prefix: str) -> Sequence[str]:
        found = self._s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return [self._get(item["Key"]) or "" for item in found]

    def _get(self, key: str) -> str | None:
        try:
            return self._s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode(errors="replace")
        except self._s3.exceptions.NoSuchKey:
            return None

    def _put(self, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket=BUCKET, Key=key, Body=body)
