"""The jobs of Slurm that `trn destroy` ends, with instances in moto and a stand-in for the login node."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.core.aws_stubs import REGION
from trainium_core.engines.pcs import aws_workloads
from trainium_core.engines.pcs.aws_login_node import AwsLoginNode, CommandFailedError
from trainium_core.engines.pcs.engine import PCS
from trainium_core.stacks.description import DescribedResource, StackDescription
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.leftovers import Workload
from trainium_core.teardown.scope import Scope
from trainium_runtime.errors import RequestRefusedError, UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

QUEUE = """train|7|RUNNING|None
a|b|8|PENDING|Priority
next|9|CONFIGURING|None
saves|10|COMPLETING|None
"""


class Login(AwsLoginNode):
    """A login node with the same answer to all commands.

    Attributes:
        commands: The last line of each command that was run.
        answer: The output of each command, or its error.
    """

    commands: list[str]
    answer: str | Exception

    def run(self, command: str) -> str:
        type(self).commands.append(command.splitlines()[-1])
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsTeardown]:
    monkeypatch.setattr(aws_workloads, "AwsLoginNode", Login)
    monkeypatch.setattr(Login, "commands", [], raising=False)
    monkeypatch.setattr(Login, "answer", QUEUE, raising=False)
    with mock_aws():
        yield AwsTeardown(REGION)


def launch_login_node(cluster: str) -> None:
    session: Any = boto3
    tags = [{"Key": "trn:cluster", "Value": cluster}, {"Key": "Name", "Value": f"{cluster}-login"}]
    session.client("ec2", REGION).run_instances(
        ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}]
    )


def running(account: AwsTeardown) -> list[Workload]:
    return [*account.running_workloads(engines=["pcs"], cluster="team")]


def test_jobs_are_listed_by_their_state(account: AwsTeardown) -> None:
    launch_login_node("team")
    assert running(account) == [
        Workload(kind="Slurm job", work_id="team:7 train"),
        Workload(kind="waiting Slurm job", work_id="team:8 a|b"),
        Workload(kind="starting Slurm job", work_id="team:9 next"),
        Workload(kind="Slurm job", work_id="team:10 saves", stopping=True),
    ]


def test_running_job_gets_two_minutes_and_others_are_cancelled(account: AwsTeardown) -> None:
    launch_login_node("team")
    for work in running(account)[:3]:
        account.stop(work)
    assert Login.commands[1:] == [
        "scontrol update JobId=7 Requeue=0 EndTime=now+2minutes",
        "scancel --state=PENDING 8",
        "scancel 9",
    ]


def test_cluster_without_login_node_has_no_jobs_to_list(account: AwsTeardown) -> None:
    launch_login_node("other")
    assert running(account) == []


def test_queue_that_cannot_be_read_is_unknown(account: AwsTeardown, monkeypatch: pytest.MonkeyPatch) -> None:
    launch_login_node("team")
    monkeypatch.setattr(Login, "answer", CommandFailedError("Unable to contact slurm controller"))
    with pytest.raises(UnavailableError, match="Unable to contact"):
        running(account)


def test_refused_stop_succeeds_only_if_the_job_has_ended(account: AwsTeardown, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Workload(kind="Slurm job", work_id="team:7 train")
    monkeypatch.setattr(Login, "answer", CommandFailedError("Invalid job id specified for job 7"))
    account.stop(work)
    monkeypatch.setattr(Login, "answer", CommandFailedError("Access/permission denied"))
    with pytest.raises(RequestRefusedError, match="denied"):
        account.stop(work)


def test_only_an_existing_pcs_stack_has_workloads() -> None:
    stack = StackDescription(name=PCS.construct_id, stack_id="1", status="CREATE_COMPLETE", cluster="team")
    scope = Scope(cluster="team", existing=(stack,))
    assert (scope.engines_with_workloads, scope.has_outliving_workloads) == (("pcs",), False)
    assert Scope(cluster="team", deleted=(stack,)).engines_with_workloads == ()


def test_stack_of_another_name_has_the_workloads_of_its_resources() -> None:
    environment = DescribedResource(kind="AWS::Batch::ServiceEnvironment", resource_id="arn")
    stack = StackDescription(
        name="Web", stack_id="1", status="CREATE_COMPLETE", cluster="team", resources=(environment,)
    )
    assert Scope(cluster="team", existing=(stack,)).engines_with_workloads == ("sagemaker",)
    assert Scope(cluster="team", deleted=(stack,)).engines_with_workloads == ("sagemaker",)
    foreign = replace(stack, resources=(replace(environment, other=True),))
    assert Scope(cluster="team", existing=(foreign,)).engines_with_workloads == ()
