"""Finds and ends the jobs of a Slurm cluster before its stack is deleted."""

from collections.abc import Callable, Iterator
from functools import partial

from trainium_core.engines.parts import Workloads
from trainium_core.engines.pcs.aws_login_node import AwsLoginNode, CommandFailedError
from trainium_core.engines.pcs.slurm_queue import (
    COMPLETING,
    cancel_command,
    cancel_waiting_command,
    end_command,
    list_all_command,
    read_jobs,
)
from trainium_core.teardown.leftovers import Workload
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_RUNNING, _STARTING, _WAITING = "Slurm job", "starting Slurm job", "waiting Slurm job"
_ALREADY_ENDED = ("Invalid job id", "has already finished", "Job is not running")
"""Messages of Slurm 26.05.5 about a job that ended, or was requeued, before it was stopped."""


def _running(account: AwsService, cluster: str) -> Iterator[Workload]:
    """The jobs of all users; none without a running login node to list them. Deleting the stack then ends the jobs."""
    login = AwsLoginNode(account, cluster)
    if login.running() is None:
        return
    try:
        output = login.run(list_all_command())
    except RequestRefusedError as error:
        raise UnavailableError(f"squeue on the login node: {error}") from error
    for name, job in read_jobs(output):
        if not job.has_ended:
            kind = _RUNNING if job.is_running else _WAITING if job.is_waiting else _STARTING
            work_id = f"{cluster}:{job.number} {name}"
            yield Workload(kind=kind, work_id=work_id, stopping=job.state == COMPLETING)


def _run(command_of: Callable[[str], str], account: AwsService, work_id: str) -> None:
    """Run a command about a job on the login node."""
    cluster, _, job = work_id.partition(":")
    try:
        AwsLoginNode(account, cluster).run(command_of(job.partition(" ")[0]))
    except CommandFailedError as error:
        if not any(text in str(error) for text in _ALREADY_ENDED):
            raise


WORKLOADS = Workloads(
    running=_running,
    stop={
        _RUNNING: partial(_run, end_command),
        _STARTING: partial(_run, cancel_command),
        _WAITING: partial(_run, cancel_waiting_command),
    },
    resource_type="AWS::PCS::Cluster",
    end_with_stack=True,
)
