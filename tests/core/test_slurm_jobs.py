"""Jobs of Slurm on AWS PCS, with S3 and CloudFormation in moto and a stand-in for the login node."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from tests.core.aws_stubs import client, create_bucket, put_record, stack_record
from tests.core.job_bucket import BUCKET, JOB, NodesOfAJob
from tests.core.plans import RESERVATION, from_settings
from trainium_core.costs.estimate import Total
from trainium_core.engines.pcs.aws_jobs import PreparedSlurmJob, SlurmJobs
from trainium_core.engines.pcs.aws_login_node import CommandFailedError
from trainium_core.engines.pcs.slurm_queue import parse_jobs, submit_command
from trainium_core.jobs.aws_scheduled_jobs import NoAnswerError
from trainium_core.jobs.engine import NoStackError, StartUnknownError
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import pack_source
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

PLAN = from_settings(nodes=2, stacks=("pcs",), pcs_queues=("trn", "urgent:10"))
STACK = "PcsStack"
NOW = datetime(2026, 11, 24, 16, tzinfo=UTC)


class Login:
    """A login node whose answers a test defines.

    Attributes:
        queue: The output of squeue.
        submitted: The output of a submission.
        commands: The commands that were run.
        fails: The error of all commands, if any.
    """

    is_on_aws = True

    def __init__(self) -> None:
        self.queue, self.submitted, self.commands = "", "7\n", list[str]()
        self.fails: Exception | None = None

    def find(self) -> str:
        return "i-0login"

    def run(self, command: str) -> str:
        if self.fails:
            raise self.fails
        self.commands.append(command)
        return self.submitted if "sbatch" in command else self.queue


@pytest.fixture
def login() -> Login:
    return Login()


@pytest.fixture
def jobs(login: Login, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmJobs]:
    with mock_aws():
        create_bucket(BUCKET)
        made = SlurmJobs(PLAN, STACK, Clients())
        monkeypatch.setattr(SlurmJobs, "login", login)
        yield made


@pytest.fixture
def deployed(jobs: SlurmJobs) -> NodesOfAJob:
    del jobs  # The fixture starts moto.
    put_record(stack_record(STACK, engine="pcs", bucket=BUCKET))
    return NodesOfAJob(client("s3"))


@pytest.fixture
def prepare(jobs: SlurmJobs, tmp_path: Path) -> Callable[..., PreparedSlurmJob]:
    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")

    def made(**request: Any) -> PreparedSlurmJob:
        return jobs.prepare(JobRequest(script=Path("train.py"), **request), pack_source(script), NOW)

    return made


Prepare = Callable[..., PreparedSlurmJob]


@pytest.mark.usefixtures("deployed")
def test_job_is_stored_and_its_batch_script_submitted(jobs: SlurmJobs, login: Login, prepare: Prepare) -> None:
    job = prepare(queue="urgent")
    assert job.check() == []
    assert job.submit() == ()
    (command,) = login.commands
    assert submit_command(job.as_text, name=job.job_id, priority=0) == command
    assert "#SBATCH --partition=urgent\n" in job.as_text
    stored = jobs.store.job(job.job_id)
    assert stored == job.job
    assert jobs.store.current() is None


@pytest.mark.usefixtures("deployed")
def test_job_that_sbatch_refuses_has_failed(jobs: SlurmJobs, login: Login, prepare: Prepare) -> None:
    job = prepare()
    login.fails = CommandFailedError("sbatch: error: Batch job submission failed: Invalid partition")
    with pytest.raises(RequestRefusedError, match="Invalid partition"):
        job.submit()
    state = jobs.state(job.job_id)
    assert state
    assert state.outcome
    assert (state.outcome.result, "Invalid partition" in state.outcome.reason) == ("failed", True)


@pytest.mark.parametrize(
    "error",
    [
        NoAnswerError("no answer"),
        CommandFailedError("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"),
    ],
)
@pytest.mark.usefixtures("deployed")
def test_submission_without_a_clear_answer_may_have_started_the_job(
    jobs: SlurmJobs, login: Login, prepare: Prepare, error: Exception
) -> None:
    job = prepare()
    login.fails = error
    with pytest.raises(StartUnknownError):
        job.submit()
    assert not jobs.store.has_ended(job.job_id)


@pytest.mark.usefixtures("deployed")
def test_job_with_refused_priority_is_submitted_with_a_note(jobs: SlurmJobs, login: Login, prepare: Prepare) -> None:
    job = prepare(priority=5)
    login.submitted = "7\nslurm_update error: Access/permission denied\n"
    (note,) = job.submit()
    assert "without its priority: slurm_update error: Access/permission denied" in note
    assert '`scontrol update JobId="7" Nice=-5`' in note
    assert not jobs.store.has_ended(job.job_id)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "from their start until 10 idle minutes after the job"),
        ({"capacity": "reservation", "reservation_id": RESERVATION}, "paid for whether jobs use them or not"),
        ({"pcs_min_nodes": 2}, "paid for whether jobs use them or not"),
    ],
)
def test_cost_says_when_nodes_are_billed(
    jobs: SlurmJobs, prepare: Prepare, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], says: str
) -> None:
    monkeypatch.setattr(jobs, "plan", from_settings(nodes=2, stacks=("pcs",), **settings))

    def hourly(_state: JobState) -> Total:
        return Total(usd=Decimal(10), unknown=0)

    monkeypatch.setattr(jobs, "hourly", hourly)
    assert says in dict(prepare().rows())["cost"]


def test_unknown_queue_is_refused_with_those_of_the_plan(prepare: Prepare) -> None:
    with pytest.raises(JobError, match=r"(?s)queue: got 'other'.*trn, urgent"):
        prepare(queue="other")


def test_stack_that_is_not_deployed_is_named(jobs: SlurmJobs) -> None:
    with pytest.raises(NoStackError, match=STACK):
        jobs.newest(1)


def test_plan_without_a_login_node_names_the_setting() -> None:
    plan = from_settings(nodes=2, stacks=("pcs",), pcs_login="off")
    with pytest.raises(UnavailableError, match="trn:pcs_login=on"):
        _ = SlurmJobs(plan, STACK, Clients()).login


def line(state: str, reason: str = "None", number: int = 7) -> str:
    return f"{JOB.id}|{number}|{state}|{reason}\n"


@pytest.fixture
def submitted(deployed: NodesOfAJob) -> NodesOfAJob:
    deployed.submit()
    return deployed


@pytest.mark.parametrize(
    ("queue", "status", "detail"),
    [
        (line("PENDING", "Resources"), "queued", "Slurm job 7, Resources"),
        (line("CONFIGURING"), "waiting for the nodes", "Slurm job 7, None"),
        (line("RUNNING"), "waiting for the nodes", ""),
        (line("FAILED", number=6) + line("PENDING", "Priority"), "queued", "Slurm job 7, Priority"),
    ],
)
@pytest.mark.usefixtures("submitted")
def test_waiting_job_has_the_state_of_slurm(
    jobs: SlurmJobs, login: Login, queue: str, status: str, detail: str
) -> None:
    login.queue = queue
    state = jobs.state(JOB.id)
    assert state
    assert (state.status, state.detail) == (status, detail)
    assert state.has_own_nodes
    (listed,) = jobs.newest(1)
    assert listed == state


@pytest.mark.parametrize(
    ("queue", "result"),
    [(line("CANCELLED"), "stopped"), (line("BOOT_FAIL"), "failed"), (line("TIMEOUT"), "time-limit"), ("", "failed")],
)
@pytest.mark.usefixtures("submitted")
def test_job_that_slurm_ended_or_lacks_is_closed(jobs: SlurmJobs, login: Login, queue: str, result: str) -> None:
    login.queue = queue
    for _ in range(2):
        state = jobs.state(JOB.id)
        assert state
        assert state.outcome
        assert (state.outcome.result, state.is_over) == (result, True)
        assert state.has_own_nodes
    assert jobs.store.has_ended(JOB.id)


def test_job_that_slurm_may_not_have_yet_is_not_closed(jobs: SlurmJobs, submitted: NodesOfAJob) -> None:
    submitted.put("job.json", replace(JOB, submitted_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}").to_json())
    state = jobs.state(JOB.id)
    assert state
    assert not state.is_over


def test_end_that_a_node_wrote_meanwhile_is_kept(jobs: SlurmJobs, login: Login, submitted: NodesOfAJob) -> None:
    def ends(command: str) -> str:
        assert "squeue" in command
        submitted.end("succeeded")
        return line("COMPLETED")

    login.run = ends
    state = jobs.state(JOB.id)
    assert state
    assert state.status == "succeeded"


@pytest.mark.parametrize("error", [UnavailableError("there is no login node"), RequestRefusedError("not allowed")])
@pytest.mark.usefixtures("submitted")
def test_job_is_not_over_if_the_slurm_queue_cannot_be_read(jobs: SlurmJobs, login: Login, error: Exception) -> None:
    login.fails = error
    state = jobs.state(JOB.id)
    assert state
    assert (state.is_over, state.detail) == (False, f"Slurm could not be read: {error}")


def test_slurm_is_asked_once_only_if_nodes_do_not_report(jobs: SlurmJobs, login: Login, submitted: NodesOfAJob) -> None:
    submitted.start()
    submitted.node(0, "running", at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    assert jobs.state(JOB.id)
    assert login.commands == []
    submitted.node(0, "running", at=f"{datetime.now(UTC) - timedelta(minutes=10):%Y-%m-%dT%H:%M:%SZ}")
    login.queue = line("RUNNING")
    for _ in range(2):
        state = jobs.state(JOB.id)
        assert state
        assert not state.is_over
    assert len(login.commands) == 1


@pytest.mark.parametrize(("state", "is_cancelled"), [("PENDING", True), ("CONFIGURING", True), ("RUNNING", False)])
@pytest.mark.usefixtures("submitted")
def test_stop_cancels_only_a_job_that_waits(jobs: SlurmJobs, login: Login, state: str, is_cancelled: bool) -> None:
    login.queue = line(state)
    jobs.stop(JOB.id)
    assert any("scancel 7" in command for command in login.commands) == is_cancelled
    found = jobs.store.state(JOB.id)
    assert found
    assert found.status == ("stopped" if is_cancelled else "stopping")


def test_cancelled_job_is_stopped_and_job_of_failed_node_has_failed() -> None:
    jobs = parse_jobs("a|1|CANCELLED|None\nb|2|NODE_FAIL|None\nsbatch: warning\n")
    assert {name: job.end and job.end[0] for name, job in jobs.items()} == {"a": "stopped", "b": "failed"}
    assert [jobs[name].has_ended for name in jobs] == [True, True]
    assert not any(replace(jobs["a"], state=state).has_ended for state in ("COMPLETING", "STOPPED", "RESV_DEL_HOLD"))


def run_submission(folder: Path, *, scontrol: str) -> str:
    """Run the command of a submission with stand-ins for its programs, and return its output."""
    programs = {
        "runuser": 'echo "$*" >>calls; shift 3; exec "$@"',
        "sbatch": "cat >script; env >environment; echo 7 | tee queue",
        "squeue": "cat queue 2>/dev/null || true",
        "scontrol": scontrol,
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/bash\ncd {folder}\n{body}\n")
        (folder / name).chmod(0o755)
    command = submit_command("#!/bin/bash\necho 'it''s $HOME'\n", name="job-1", priority=100)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "AWS_SECRET": "of root"}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True).stdout


def test_submission_runs_as_the_user_of_jobs_and_root_sets_the_priority(tmp_path: Path) -> None:
    assert run_submission(tmp_path, scontrol='echo "scontrol $*" >>calls') == "7\n"
    assert (tmp_path / "script").read_text() == "#!/bin/bash\necho 'it''s $HOME'\n"
    user, scontrol = (tmp_path / "calls").read_text().splitlines()
    assert (user.startswith("-u trn-job -- "), scontrol) == (True, "scontrol update JobId=7 Nice=-100")
    assert "AWS_SECRET" not in (tmp_path / "environment").read_text()


def test_repeated_submission_leaves_one_job(tmp_path: Path) -> None:
    for _ in range(2):
        assert run_submission(tmp_path, scontrol="true") == "7\n"
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_refused_priority_does_not_fail_the_submission(tmp_path: Path) -> None:
    assert run_submission(tmp_path, scontrol="echo denied >&2; exit 1") == "7\ndenied\n"
