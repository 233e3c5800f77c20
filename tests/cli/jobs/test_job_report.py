"""The rows about a job in `trn jobs JOB`."""

import pytest

from trainium_cli.jobs.job_report import state_rows
from trainium_core.jobs.progress import JobState
from trainium_wire.job import Job


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
