"""Commands that submit, list and end jobs in Slurm, and parsers of their output."""

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainium_wire.formats import one_line
from trainium_wire.job import FAILED, STOPPED, TIME_LIMIT

JOB_USER = "trn-job"
"""The user on every node that runs the jobs of `trn run`."""

COMPLETING = "COMPLETING"
PENDING, STARTING = "PENDING", "CONFIGURING"
_RESULTS = {"CANCELLED": STOPPED, "TIMEOUT": TIME_LIMIT, "DEADLINE": TIME_LIMIT}
_QUEUED = (PENDING, "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
"""Jobs in the last three states wait for `scontrol release`."""
_ALIVE = (*_QUEUED, STARTING, "RUNNING", COMPLETING, "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")
_FORMAT = "%j|%i|%T|%r"
_UNANSWERED = ("Socket timed out", "Zero Bytes were transmitted", "Message receive failure")
"""Messages of Slurm (slurm_errno.c) after which slurmctld may have received a request."""
_LONGEST_REFUSAL = 300


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """A job as Slurm prints it.

    Attributes:
        number: Slurm's ID.
        state: Slurm's state, such as RUNNING.
        reason: Why the job waits, such as Resources or Priority.
    """

    number: str
    state: str
    reason: str

    @property
    def has_ended(self) -> bool:
        return self.state not in _ALIVE

    @property
    def is_waiting(self) -> bool:
        return self.state in _QUEUED

    @property
    def is_running(self) -> bool:
        """Whether the job is running or completing."""
        return self.state in ("RUNNING", COMPLETING)

    @property
    def stage(self) -> str:
        """The stage of a job that waits for its turn or its nodes, for display; empty for other jobs."""
        return "queued" if self.is_waiting else "waiting for the nodes" if self.state == STARTING else ""

    @property
    def detail(self) -> str:
        return f"Slurm job {self.number}, {self.reason}" if self.stage else ""

    @property
    def end(self) -> tuple[str, str] | None:
        """Result and reason of a job whose nodes did not report its end; None before the end."""
        reason = f"Slurm job {self.number} ended with {self.state} before its nodes reported how"
        return (_RESULTS.get(self.state, FAILED), reason) if self.has_ended else None


def list_command() -> str:
    """The command that prints the jobs of `trn run`, including jobs that ended recently."""
    return _with_slurm(f"squeue --user={JOB_USER} --states=all --noheader --format={shlex.quote(_FORMAT)}")


def parse_jobs(text: str) -> Mapping[str, SlurmJob]:
    """The jobs in the output of `list_command`, by name. If names are equal, the job with the highest number counts."""
    jobs: dict[str, SlurmJob] = {}
    for name, job in read_jobs(text):
        if name not in jobs or int(jobs[name].number) < int(job.number):
            jobs[name] = job
    return jobs


def read_jobs(text: str) -> Iterator[tuple[str, SlurmJob]]:
    """The names and jobs that squeue prints. Names may contain the separator."""
    for line in text.splitlines():
        name, *parts = line.strip().rsplit("|", 3)
        if len(parts) == 3 and parts[0].isdecimal():
            number, state, reason = parts
            yield name, SlurmJob(number=number, state=state, reason=reason)


def submit_command(script: str, *, name: str, priority: int) -> str:
    """The command that submits a batch script as the user of jobs, and prints Slurm's ID.

    botocore may send the command twice, so a job with the same name is not submitted again. The user of jobs cannot
    raise a priority, so root does. If Slurm refuses the priority, the job stays in the queue, and the command prints
    the refusal.
    """
    packed = base64.b64encode(script.encode()).decode()
    # The job does not inherit root's environment. Its user has no home directory: each attempt creates one.
    environment = f'env -i PATH="$PATH" HOME=/nonexistent USER={JOB_USER} LOGNAME={JOB_USER}'
    same_name = f"squeue --user={JOB_USER} --name={shlex.quote(name)} --states=all --noheader --format=%i"
    sbatch = f"base64 -d <<<{packed} | runuser -u {JOB_USER} -- {environment} sbatch --parsable"
    lines = [
        f"number=$({same_name}) || exit",
        f'[ -n "$number" ] || number=$({sbatch}) || exit',
        'echo "$number"',
    ]
    if priority:
        lines.append(f'refusal=$({_priority_command("$number", priority)} 2>&1) || echo "$refusal"')
    return _with_slurm("\n".join(lines))


def _priority_command(number: str, priority: int) -> str:
    return f'scontrol update JobId="{number}" Nice=-{priority}'


def priority_notes(output: str, priority: int) -> Sequence[str]:
    """Notes on the output of `submit_command`."""
    number, _, refusal = output.strip().partition("\n")
    if not refusal:
        return ()
    why = f"Slurm job {number} is in the queue without its priority: {one_line(refusal, _LONGEST_REFUSAL)}"
    return (f"{why}. To set it, run `{_priority_command(number, priority)}` as root on the login node.",)


def may_have_submitted(error: str) -> bool:
    """Whether a job may be in the queue although sbatch failed with this error."""
    return any(text in error for text in _UNANSWERED)


def cancel_command(number: str) -> str:
    return _with_slurm(f"scancel {shlex.quote(number)}")


def list_all_command() -> str:
    """The command that prints the current jobs of all users.

    Each array element that has started has a separate number. Waiting elements share the number of the array.
    """
    return _with_slurm(f"squeue --noheader --format={shlex.quote(_FORMAT.replace('%i', '%A'))}")


def cancel_waiting_command(number: str) -> str:
    """The command that cancels a waiting job, but not the elements of its array that are running."""
    return _with_slurm(f"scancel --state=PENDING {shlex.quote(number)}")


def end_command(number: str) -> str:
    """The command that ends a job in two minutes, after the signal of its --signal option, without requeueing it."""
    return _with_slurm(f"scontrol update JobId={shlex.quote(number)} Requeue=0 EndTime=now+2minutes")


def _with_slurm(command: str) -> str:
    """The command with Slurm's programs in its PATH. AWS PCS installs each version in a separate folder."""
    return f"cd / || exit\n. /etc/profile.d/trn-slurm.sh\n{command}\n"
