"""Jobs of `trn run` on a Slurm cluster, submitted with the batch script that `trn` renders."""

import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.lab.cluster_jobs import EXAMPLE, PACED
from tools.lab.paths import RUN
from tools.lab.site import BUCKET
from tools.lab.slurm.cluster import SlurmCluster
from tools.lab.stored_jobs import StoredJobs
from trainium_core.engines.pcs.batch_script import batch_script
from trainium_core.engines.pcs.slurm_settings import queues
from trainium_core.jobs.source_package import pack_directory
from trainium_wire.job import Job
from trainium_wire.job_keys import job_keys


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A job: its ID in S3, and its ID in Slurm."""

    id: str
    slurm_id: int


class SlurmJobs(StoredJobs):
    """The jobs of one cluster. Their source is examples/lm with paced.py."""

    def __init__(self, slurm: SlurmCluster) -> None:
        super().__init__(slurm.lab, BUCKET, count=slurm.plan.nodes)
        self._slurm = slurm
        source = RUN / "slurm/source"
        shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        shutil.copy(PACED, source)
        self._package = pack_directory(source)

    def submit(self, name: str, command: str, *, nodes: int = 1, user: str = "ada", **fields: Any) -> Submitted:
        """Submit a job. `fields` are further fields of `Job`."""
        job = Job(
            id=f"{name}-{secrets.token_hex(3)}",
            name=name,
            nodes=nodes,
            processes_per_node=1,
            command=command,
            source_sha256=self._package.digest,
            checkpoint_seconds=1,
            compile_cache=False,
            **fields,
        )
        keys = job_keys(job.id)
        self.s3.put_object(Bucket=BUCKET, Key=keys.source, Body=self._package.archive)
        self.s3.put_object(Bucket=BUCKET, Key=keys.job, Body=job.to_json().encode())
        script = batch_script(self._slurm.plan, job, queue=queues(self._slurm.plan)[0].name)
        return Submitted(id=job.id, slurm_id=self._slurm.sbatch(script, user=user))

    def checkpoints(self, job: str) -> Sequence[str]:
        """The manifests of complete checkpoints."""
        prefix = f"{job_keys(job).folder}/checkpoints/"
        keys = [key for key in self.objects(job) if key.startswith(prefix)]
        return [key for key in keys if key.endswith(".json") and "/" not in key.removeprefix(prefix)]
