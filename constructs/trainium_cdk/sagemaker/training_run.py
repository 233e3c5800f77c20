"""Values that are the same for every job of a state machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MINUTE, HOUR = 60, 3600
FIRST_PAUSE_SECONDS = 5 * MINUTE
LONGEST_PAUSE_SECONDS = HOUR
START_UP_SECONDS = HOUR
"""The time of a job in addition to its run time: waiting for instances, pulling the image, saving the model."""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """Values that are the same for every job of a state machine. Texts may be CDK tokens.

    job_prefix: prefix of job names. checkpoint_url: folder for runs whose request has no checkpoint location. network:
    a VpcConfig, or None. budget_hours: the maximum run time. capacity_retries: number of retries. tags: default tags of
    a job.
    """

    job_prefix: str
    role_arn: str
    topic_arn: str
    checkpoint_url: str
    network: Mapping[str, Any] | None
    budget_hours: int
    capacity_retries: int
    tags: Mapping[str, str]

    @property
    def budget_seconds(self) -> int:
        return self.budget_hours * HOUR

    @property
    def pauses(self) -> list[int]:
        """Seconds to wait after the n-th attempt. The first entry, for n = 0, is not used."""
        doubled = (FIRST_PAUSE_SECONDS * 2**n for n in range(self.capacity_retries + 1))
        return [0, *(min(pause, LONGEST_PAUSE_SECONDS) for pause in doubled)]
