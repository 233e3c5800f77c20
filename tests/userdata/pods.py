"""The pods of a job on EKS as processes: the command and environment of the rendered JobSet, and one S3."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.job_nodes import SPEC, source_archive
from tests.userdata.node_files import BUCKET, JOB, TIMEOUT_SECONDS, StoredJob
from trainium_core.engines.eks.job_program import program_archive
from trainium_core.engines.eks.job_set import PodSettings, job_objects
from trainium_core.plan import Plan
from trainium_wire.job import Job

IMAGE = PodSettings(image="image:1", bucket=BUCKET, cache_url=f"s3://{BUCKET}/cache")


class Pods(StoredJob):
    """`submit` stores a job, `start` starts pods of it, as JobSet does at first, after a restart and when it resumes.

    Attributes:
        uid: UID of the JobSet.
        restarts: How often JobSet has started the job again.
        wait_seconds: How long a pod waits for the others.
    """

    def __init__(self, folder: Path, plan: Plan, aws: AwsStandIn, python: Path | None = None) -> None:
        self.plan, self.aws, self.folder = plan, aws, folder
        self.uid, self.restarts, self._starts = "uid-1", 0, 0
        self.wait_seconds = float(TIMEOUT_SECONDS)
        self._python = str(python or sys.executable)
        self._job: Job | None = None
        self.processes: list[subprocess.Popen[bytes]] = []
        with zipfile.ZipFile(BytesIO(program_archive())) as archive:
            archive.extractall(folder / "program")

    def submit(self, files: Mapping[str, str], **changes: Any) -> None:
        spec = {**SPEC, "nodes": self.plan.nodes, "command": f"{self._python} train.py", **changes}
        self._job = Job.from_record(spec)
        self.aws.records[f"{BUCKET}/jobs/{JOB}/source.tar.gz"] = source_archive(files)
        self.aws.records[f"{BUCKET}/jobs/{JOB}/job.json"] = self._job.to_json()

    def environment(self, index: int) -> dict[str, str]:
        """The environment of the container, with the values of the fields of the pod."""
        assert self._job
        pod = job_objects(self.plan, self._job, IMAGE)[0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        fields = {
            "metadata.labels['jobset.sigs.k8s.io/jobset-uid']": self.uid,
            "metadata.labels['jobset.sigs.k8s.io/restart-attempt']": str(self.restarts),
            "status.podIP": f"127.0.{self._starts}.{index + 2}",
            "spec.nodeName": f"ip-10-0-0-{index}.us-west-2.compute.internal",
        }
        rendered = {
            each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in pod["spec"]["containers"][0]["env"]
        }
        return {
            **rendered,
            "JOB_COMPLETION_INDEX": str(index),
            "PATH": f"{Path(self._python).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TRN_FOLDER": str(self.folder / f"work-{self._starts}-{index}"),
            "TRN_WAIT_SECONDS": str(self.wait_seconds),
            "TRN_HTTP_PAUSE": "0.05",
            **self.aws.pod_environment(self.folder),
        }

    def start(self, *indexes: int) -> None:
        """Start the pods with these indexes. Default: all."""
        for index in indexes or range(self.plan.nodes):
            with (self.folder / f"pod-{self._starts}-{index}").open("wb") as out:
                self.processes.append(
                    subprocess.Popen(
                        [self._python, "-m", "trn_pod"],
                        cwd=self.folder / "program",
                        env=self.environment(index),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                    )
                )

    def wait(self) -> list[int]:
        """The exit codes. JobSet then starts the job again, or not."""
        codes = [process.wait(TIMEOUT_SECONDS) for process in self.processes]
        self.processes, self.restarts, self._starts = [], self.restarts + 1, self._starts + 1
        return codes

    def suspend(self) -> list[int]:
        """End the pods, as for Kueue. Returns the exit codes. JobSet then starts pods with the same labels."""
        for process in self.processes:
            process.terminate()
        codes, self.restarts = self.wait(), self.restarts - 1
        return codes

    def output(self, index: int, start: int = 0) -> str:
        return (self.folder / f"pod-{start}-{index}").read_text()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
