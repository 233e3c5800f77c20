"""Slurm nodes that run a batch script: our real programs, each node with its own files and address.

srun, scontrol and scancel are stand-ins; the lab has the real ones.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.job_nodes import SPEC, source_archive
from tests.userdata.node_files import BUCKET, JOB, TIMEOUT_SECONDS, StoredJob, link_packages
from trainium_core.engines.pcs.batch_script import batch_script
from trainium_core.plan import Plan
from trainium_wire.job import Job

SLURM_ID = "7"
PROGRAMS = {
    "srun": """declare -A ranks
while [[ $1 == --* ]]; do shift; done
pipes="$NODES/input-$$"
for ((rank = 0; rank < SLURM_JOB_NUM_NODES; rank++)); do
  mkfifo "$pipes-$rank"
  SLURM_NODEID=$rank ROOT=$NODES/$rank "$@" <"$pipes-$rank" & ranks[$!]=$rank
done
tee "$pipes-"* <&0 >/dev/null &
echo "${!ranks[@]}" >"$NODES/tasks"
code=0
while ((${#ranks[@]})); do
  status=0; wait -n -p ended || status=$?
  unset "ranks[$ended]"
  if ((status)); then code=$status; kill "${!ranks[@]}" 2>/dev/null; fi
done
exit "$code\"""",
    "scontrol": """echo "$*" >>"$NODES/scontrol"
case "$*" in
*"--json show job"*) echo '{"jobs": [{"job_state": ["'"$(<"$NODES/state")"'", "COMPLETING"]}]}' ;;
*"show job"*) echo "JobId=7 JobState=$(sed s/.*ED$/COMPLETING/ "$NODES/state") Reason=None" ;;
requeue*) kill -TERM "$(<"$NODES/batch")" $$ ;;
esac""",
    "scancel": """echo "$*" >>"$NODES/scancel"; kill -TERM "$(<"$NODES/batch")\"""",
    "trn-slurm": """export ROOT=${ROOT:-$NODES/0} PYTHONPATH=$NODES/opt
cd / && exec "$PYTHON" -S -m trn_slurm "$@\"""",
}


class SlurmNodes(StoredJob):
    """`submit` stores a job in S3. Each `run` runs its batch script, as Slurm does at first and after each requeue.

    Attributes:
        slurm_id: Slurm's ID of the job, which a requeued job keeps.
    """

    def __init__(self, folder: Path, plan: Plan, aws: AwsStandIn) -> None:
        self.plan, self.aws, self.folder = plan, aws, folder
        self._job: Job | None = None
        self.process: subprocess.Popen[str] | None = None
        self.slurm_id = SLURM_ID
        for name, body in PROGRAMS.items():
            _write(folder / "bin" / name, f"#!/bin/bash\n{body}\n", mode=0o755)
        link_packages(folder / "opt", "trn_node", "trn_job", "trn_cache", "trn_slurm")
        for rank in range(plan.nodes):
            _write(folder / f"{rank}/etc/trn/plan.json", json.dumps({"frameworks": {}, "scratch": None}))
            places = f"TRN_REGION={aws.region}\nTRN_REPORT_URL=s3://{BUCKET}/nodes\n"
            _write(folder / f"{rank}/etc/trn/places.env", places)
            record: dict[str, Any] = {
                "instance_id": f"i-{rank}",
                "state": "verified",
                "address": f"127.0.0.{rank + 2}",
                "checks": [],
            }
            _write(folder / f"{rank}/var/lib/trn/record.json", json.dumps(record))
            (folder / f"{rank}/var/tmp").mkdir(parents=True)
        self.set_state("RUNNING")

    def set_state(self, state: str) -> None:
        """Set the state of the job. While processes of the job end, scontrol shows an end state only in JSON."""
        (self.folder / "state").write_text(state)

    def submit(self, script: str, **changes: Any) -> None:
        """Store a job that runs a Python script on every node."""
        spec = {**SPEC, "nodes": self.plan.nodes, "command": f"{sys.executable} train.py", **changes}
        self._job = Job.from_record(spec)
        self.aws.records[f"{BUCKET}/jobs/{JOB}/source.tar.gz"] = source_archive({"train.py": script})
        self.aws.records[f"{BUCKET}/jobs/{JOB}/job.json"] = self._job.to_json()

    def start(self) -> None:
        assert self._job
        self._start(batch_script(self.plan, self._job, queue="trn"))

    def _start(self, text: str) -> None:
        script = _write(self.folder / "job.sh", text)
        with (self.folder / "out").open("a") as out:
            self.process = subprocess.Popen(
                ["bash", "-c", f'echo $$ >"$NODES/batch"; exec bash {script}'],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )

    def start_with_addresses(self, ranks: Sequence[int], *, seconds: int) -> None:
        """Start a batch script whose srun passes on the addresses of some nodes, and ends after some seconds."""
        addresses = "".join(f"{rank} i-{rank} 127.0.0.{rank + 2}\\n" for rank in ranks)
        self._start(f'exec trn-slurm follow "$JOB" bash -c \'printf "{addresses}"; sleep {seconds}\'')

    def wait(self) -> int:
        """Return the exit code of the batch script. The remaining processes are then killed, as by Slurm."""
        assert self.process
        code = self.process.wait(TIMEOUT_SECONDS)
        self.close()
        return code

    def run(self) -> int:
        self.start()
        return self.wait()

    def signal_all(self, number: signal.Signals) -> None:
        """Signal the batch script and all tasks, as scancel does."""
        self.await_(self._follows)
        for process in [self._batch, *self.tasks]:
            os.kill(process, number)

    def signal_batch(self, number: signal.Signals) -> None:
        self.await_(self._follows)
        os.kill(self._batch, number)

    def _follows(self) -> bool:
        """Whether the batch script has become trn-slurm, which catches signals. Before, a signal would end bash."""
        status = Path(f"/proc/{self._batch}/status").read_text()
        caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(caught >> (signal.SIGTERM - 1) & 1)

    @property
    def tasks(self) -> list[int]:
        """Process IDs of the tasks, in no particular order."""
        return [int(text) for text in (self.folder / "tasks").read_text().split()]

    @property
    def _batch(self) -> int:
        return int((self.folder / "batch").read_text())

    @property
    def output(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def requeues(self) -> int:
        file = self.folder / "scontrol"
        return file.read_text().count("requeue") if file.exists() else 0

    def close(self) -> None:
        """End all processes of the job, as Slurm does by their cgroup: each job has its own session."""
        if self.process:
            while left := list(self._processes()):
                for process in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
            self.process.wait(TIMEOUT_SECONDS)

    def _processes(self) -> Iterator[int]:
        """The processes whose environment or command line names our folder: a job's command has a new environment."""
        ours = f"{self.folder}/".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if any(ours in (process / name).read_bytes() for name in ("environ", "cmdline")):
                    yield int(process.name)

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.defpath}",
            "PYTHON": sys.executable,
            "NODES": str(self.folder),
            "JOB": JOB,
            "HOME": str(self.folder),
            "SLURM_JOB_ID": self.slurm_id,
            "SLURM_JOB_NUM_NODES": str(self.plan.nodes),
            "TRN_HTTP_PAUSE": "0.05",
            **self.aws.loopback_environment,
        }


def _write(file: Path, text: str, *, mode: int = 0o644) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file
