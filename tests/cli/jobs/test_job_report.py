"""The rows about a job in `trn jobs JOB`."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from trainium_cli.jobs.job_report import state_rows
from trainium_core.costs.estimate import Total
from trainium_core.jobs.progress import JobState
from trainium_wire.job import Job, Outcome
from trainium_wire.job_progress import Attempt


@pytest.mark.parametrize(
    ("has_ranks", "profile", "fetch"),
    [
        (True, (0, 31), "`trn cp fit-1:outputs/profile profile`, then"),
        (True, (40,), "`trn cp fit-1:outputs/node-1/profile profile`, then"),
        (True, (0, 32), "`trn cp fit-1:outputs/profile profile` (others: outputs/node-1/profile), then"),
        (False, (1,), "`trn cp fit-1:outputs/node-1/profile profile`, then"),
    ],
)
def test_profile_row_names_the_folder_of_each_profiled_node(
    has_ranks: bool, profile: tuple[int, ...], fetch: str
) -> None:
    job = Job(id="fit-1", nodes=2, processes_per_node=32, command="true", has_ranks=has_ranks, profile=profile)
    rows = dict(state_rows(JobState(job=job, attempts=(), outcome=None), None))
    assert fetch in rows["profile"]


def test_cost_of_a_job_with_its_own_nodes_excludes_the_queue() -> None:
    ended = Outcome(result="succeeded", reason="", at=datetime(2026, 11, 24, 18, tzinfo=UTC))
    started = datetime(2026, 11, 24, 17, 30, tzinfo=UTC)
    attempt = Attempt(number=1, started=started, instance_ids=("i-0",), resume_from=None, outcome=ended)
    job = Job(id="fit-1", nodes=1, processes_per_node=1, command="true", submitted_at="2026-11-24T16:00:00Z")
    state = JobState(job=job, attempts=(attempt,), outcome=ended)
    hour = Total(usd=Decimal(10), unknown=0)
    assert dict(state_rows(state, hour))["cost"].startswith("$20.00 of the cluster's time")
    own = replace(state, has_own_nodes=True)
    assert dict(state_rows(own, hour))["cost"].startswith("$5.00 for 30 min of its attempts")
    assert "cost" not in dict(state_rows(replace(own, attempts=()), hour))
