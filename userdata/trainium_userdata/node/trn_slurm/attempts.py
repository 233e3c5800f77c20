"""The attempts of a job in S3, which the batch script begins on the first node of an allocation."""

from __future__ import annotations

from trainium_wire.keys import JOBS_PREFIX
from trn_job.scheduled_attempts import ScheduledAttempts
from trn_node.cluster import folder
from trn_node.objects import Objects

from . import slurm


class Attempts(ScheduledAttempts):
    """The attempts of a job of this cluster. Raises as ScheduledAttempts."""

    def __init__(self, job_id: str, s3: Objects) -> None:
        super().__init__(job_id, s3, f"{folder()}/{JOBS_PREFIX}", scheduler="Slurm", submission=slurm.job_id())


def parse_nodes(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The lines of `node.address`: addresses by instance ID, in the order of ranks, and problems by instance ID.

    Raises ValueError.
    """
    lines = sorted((line.split(None, 3) for line in text.splitlines() if line.strip()), key=lambda part: int(part[0]))
    addresses = {instance: address for _, instance, address, *_ in lines}
    return addresses, {instance: problem[0] for _, instance, _, *problem in lines if problem}
