"""What is fixed for every job that a state machine runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MINUTE, HOUR = 60, 3600
FIRST_PAUSE_SECONDS = 5 * MINUTE
LONGEST_PAUSE_SECONDS = HOUR
START_UP_SECONDS = HOUR
"""What a job may take besides its run time: waiting for instances, pulling the image, saving the model."""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """What is fixed for every job of the machine; texts may be CDK tokens.

    job_prefix: what its names begin with. checkpoint_url: folder of the runs whose request names no checkpoints.
    network: a VpcConfig, or None. budget_hours: the longest run time. capacity_retries: how often it tries again.
    tags: of a job whose request has none.
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
        """Seconds to wait after the n-th attempt; the first entry, before any attempt, is never waited."""
        doubled = (FIRST_PAUSE_SECONDS * 2**n for n in range(self.capacity_retries + 1))
        return [0, *(min(pause, LONGEST_PAUSE_SECONDS) for pause in doubled)]
