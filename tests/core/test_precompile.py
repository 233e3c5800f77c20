"""The precompile host: its jobs, when they are skipped, the host in Auto Scaling, its price and its quota."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from tests.core.aws_stubs import client, create_bucket
from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from trainium_core.costs.estimate import estimate, precompile_host_hour
from trainium_core.facts import facts
from trainium_core.jobs.job import new_job
from trainium_core.jobs.precompile import earlier_compilation, is_precompilation, precompile_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.nodes.aws_precompile_host import AwsPrecompileHost, HostState
from trainium_core.plan import Plan
from trainium_wire.cache_place import place_of
from trainium_wire.job import Job, Outcome

HOST = "r7i.24xlarge"
PLAN = Plan.of(instance_type="trn1.32xlarge", region="us-west-2", nodes=2, precompile_instance_type=HOST)
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


COMMAND = "torchrun --nnodes=$TRN_NODES --node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE compile.py"


@pytest.fixture
def request_() -> JobRequest:
    return JobRequest(command=COMMAND, name="train")


def job_of_host(request: JobRequest, plan: Plan = PLAN, **more: Any) -> Job:
    return precompile_job(plan, request, script="train.py", now=NOON, **more)


def test_host_compiles_for_the_world_size_of_the_job(request_: JobRequest) -> None:
    job, compiled = new_job(PLAN, request_, script="train.py", now=NOON), job_of_host(request_)
    assert (compiled.nodes, compiled.processes_per_node) == (1, 64)

    def place(of: Job) -> str:
        world = of.nodes * of.processes_per_node
        return place_of(compiler="2.21", instance_type="trn1.32xlarge", lnc=1, stack="xla", world_size=world).path

    assert place(compiled) == place(job)


def test_host_uses_the_stack_of_the_request(request_: JobRequest) -> None:
    plan = replace(PLAN, ami="ami-0123456789abcdef0")
    assert plan.framework is None
    stacks = {job_of_host(replace(request_, stack=stack), plan).stack for stack in ("jax", "xla")}
    assert stacks == {"jax", "xla"}


def test_precompile_job_is_recognised_and_has_a_time_limit_and_no_retries(request_: JobRequest) -> None:
    compiled = job_of_host(replace(request_, name="a" * 40))
    assert len(compiled.id) <= 63
    assert is_precompilation(compiled)
    assert not is_precompilation(new_job(PLAN, request_, script="train.py", now=NOON))
    assert (compiled.retries, compiled.time_limit_seconds) == (0, 240 * 60)
    assert job_of_host(replace(request_, time_limit_minutes=10_000)).time_limit_seconds == 1380 * 60
    assert Job.from_json(compiled.to_json()) == compiled


def printed(command: str, folder: Path) -> list[str]:
    """The output of a command whose torchrun prints its arguments."""
    torchrun = folder / "torchrun"
    torchrun.write_text('#!/bin/bash\necho "$TRN_NODE_RANK of $TRN_NODES at $HEAD_NODE: $*"\n')
    torchrun.chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "TRN_NODES": "1", "TRN_NODE_RANK": "0", "HEAD_NODE": "10.0.0.1"}
    ran = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True)
    return sorted(ran.stdout.splitlines())


@pytest.mark.parametrize("end", ["", "  # a comment", " <<END\ntext\nEND"])
def test_host_runs_the_part_of_every_node(request_: JobRequest, tmp_path: Path, end: str) -> None:
    assert printed(job_of_host(replace(request_, command=COMMAND + end)).command, tmp_path) == [
        "0 of 2 at 127.0.0.1: --nnodes=2 --node_rank=0 --master_addr=127.0.0.1 compile.py",
        "1 of 2 at 127.0.0.1: --nnodes=2 --node_rank=1 --master_addr=127.0.0.1 compile.py",
    ]


def refusal(request: JobRequest, plan: Plan) -> str:
    with pytest.raises(JobError) as caught:
        job_of_host(request, plan)
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("instance_type", "region", "image", "reason"),
    [
        ("trn1.32xlarge", "us-west-2", None, "PyTorch/XLA opens a Neuron device before it traces a graph"),
        ("trn2.48xlarge", "us-east-2", "torch-neuronx-2.14", "native PyTorch compiles on Trn2 and Trn3 instances only"),
    ],
)
def test_scripts_are_refused_on_a_cpu_host_and_commands_are_not(
    tmp_path: Path, instance_type: str, region: str, image: str | None, reason: str
) -> None:
    ami = {"ami": f"/aws/service/neuron/dlami/{image}/ubuntu-24.04/latest/image_id"} if image else {}
    plan = Plan.of(instance_type=instance_type, region=region, precompile_instance_type=HOST, **ami)
    assert reason in refusal(JobRequest(script=tmp_path / "train.py"), plan)
    command = JobRequest(command="python compile.py", name="compile")
    assert job_of_host(command, plan).command == "python compile.py"


class FakeEarlierJobs:
    """Earlier jobs with their results; None for a job that has not ended."""

    def __init__(self, *jobs: tuple[Job, str | None]) -> None:
        self._states = {
            job.id: JobState(job=job, attempts=(), outcome=Outcome(result=result) if result else None, stopping=False)
            for job, result in jobs
        }

    def job_ids(self) -> Sequence[str]:
        return list(self._states)

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:  # noqa: ARG002
        return self._states[job_id]


def compiled_by(request: JobRequest, *earlier: tuple[Job, str | None]) -> str | None:
    job = new_job(PLAN, request, script="train.py", now=NOON, source_sha256="a")
    return earlier_compilation(job, job_of_host(request, source_sha256="a"), FakeEarlierJobs(*earlier))


def test_same_work_is_not_compiled_again_after_a_success(request_: JobRequest) -> None:
    job = new_job(PLAN, request_, script="train.py", now=NOON, source_sha256="a")
    host = job_of_host(request_, source_sha256="a")
    assert compiled_by(request_, (host, "succeeded")) == host.id
    assert compiled_by(request_, (job, "succeeded")) == job.id
    assert compiled_by(request_, (host, "failed"), (job, None)) is None


@pytest.mark.parametrize(
    "changes", [{"source_sha256": "b"}, {"environment": {"NEURON_CC_FLAGS": "-O1"}}, {"nodes": 1}], ids=str
)
def test_other_work_is_compiled(request_: JobRequest, changes: dict[str, Any]) -> None:
    job = new_job(PLAN, request_, script="train.py", now=NOON, source_sha256="a")
    assert compiled_by(request_, (replace(job, **changes), "succeeded")) is None


# The host in Auto Scaling.

GROUP = "TrnClusterStack-trn-pilot-precompile"


@pytest.fixture
def host(made_up_credentials: None) -> Any:  # noqa: ARG001
    with mock_aws():
        ec2 = client("ec2")
        ec2.create_launch_template(LaunchTemplateName="host", LaunchTemplateData={"ImageId": "ami-0123456789abcdef0"})
        autoscaling = client("autoscaling")
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            LaunchTemplate={"LaunchTemplateName": "host"},
            MinSize=0,
            MaxSize=1,
            VPCZoneIdentifier=ec2.describe_subnets()["Subnets"][0]["SubnetId"],
        )
        create_bucket("records")
        yield AwsPrecompileHost("us-west-2", GROUP, "records")


def test_host_has_a_scheduled_end_and_is_terminated_on_request(host: AwsPrecompileHost) -> None:
    assert host.state() == HostState(wanted=False)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    host.start(until)
    autoscaling = client("autoscaling")
    (action,) = autoscaling.describe_scheduled_actions(AutoScalingGroupName=GROUP)["ScheduledUpdateGroupActions"]
    assert (action["DesiredCapacity"], action["StartTime"]) == (0, until)
    state = host.state()
    assert state
    assert (state.wanted, len(state.instances), state.is_gone) == (True, 1, False)
    host.end()
    assert host.state() == HostState(wanted=False)


def test_failed_host_reports_its_reason(host: AwsPrecompileHost) -> None:
    assert host.failure("i-1") == ""
    s3 = client("s3")
    for text, reason in (
        ('{"state": "failed", "reason": "the disk is full"}', "the disk is full"),
        ('{"state": "over"}', ""),
        ("nonsense", ""),
    ):
        s3.put_object(Bucket="records", Key="precompile/i-1.json", Body=text.encode())
        assert host.failure("i-1") == reason


# Its price and its quota.


def test_host_hour_is_in_the_estimate_and_not_in_the_running_hour() -> None:
    region = {"instance_type": "trn1.32xlarge", "region": "us-east-1"}
    without, with_host = Plan.of(**region), Plan.of(**region, precompile_instance_type=HOST)
    shown = estimate(with_host, aws=None)
    assert str(precompile_host_hour(with_host, shown)) == "$6.35"
    assert shown.running_hour.usd == estimate(without, aws=None).running_hour.usd
    assert precompile_host_hour(PLAN, estimate(PLAN, aws=None)).unknown == 1  # No source has its price in us-west-2.


STANDARD = facts()["quotas"]["standard"]["on-demand"]


def precompile_finding(**account: Any) -> Any:
    return finding_of("precompile", FakeAccount(**account), precompile_instance_type=HOST)


def test_host_beyond_the_quota_is_only_a_warning() -> None:
    assert precompile_finding().outcome == "pass"
    assert STANDARD["code"] in precompile_finding().found
    small = precompile_finding(limit=64)
    assert small.outcome == "warn"
    assert "request" in small.fix
    assert small.fix.endswith("or set trn:precompile_instance_type to a smaller type")


def test_host_that_the_zone_does_not_offer_is_only_a_warning() -> None:
    finding = precompile_finding(zones=("usw2-az3",))
    assert finding.outcome == "warn"
    assert finding.found.endswith(f"does not offer {HOST}")


def test_plan_without_host_is_refused_with_its_setting(request_: JobRequest) -> None:
    plan = Plan.of(instance_type="trn1.32xlarge", region="us-west-2")
    assert "trn:precompile_instance_type" in refusal(request_, plan)


def test_precompilation_for_gpus_is_refused(request_: JobRequest) -> None:
    plan = Plan.of(instance_type="p5.4xlarge", region="us-west-2")
    with pytest.raises(JobError, match="graphs for GPUs are not precompiled") as refused:
        job_of_host(request_, plan)
    assert [problem.key for problem in refused.value.problems] == ["trn:instance_type"]
