"""Commands on the login node, against botocore's models of EC2 and Systems Manager."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber

from tests.core.aws_stubs import REGION
from trainium_core.engines.pcs.aws_login_node import AwsLoginNode, CommandFailedError
from trainium_core.jobs.aws_scheduled_jobs import NoAnswerError
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import RequestRefusedError, UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

INSTANCE, COMMAND = "i-0aaaaaaaaaaaaaaaa", "11111111-2222-3333-4444-555555555555"


class Stubs:
    def __init__(self) -> None:
        account = AwsService(REGION)
        self.login = AwsLoginNode(account, "trn-pilot", pause=lambda _: None)
        self.ec2: Any = Stubber(account.client("ec2"))
        self.ssm: Any = Stubber(account.client("ssm"))
        for stub in (self.ec2, self.ssm):
            stub.activate()

    def add_instances(self, *instances: str) -> None:
        found = [{"Instances": [{"InstanceId": instance}]} for instance in instances]
        filters = [
            {"Name": "tag:trn:cluster", "Values": ["trn-pilot"]},
            {"Name": "tag:Name", "Values": ["trn-pilot-login"]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        self.ec2.add_response("describe_instances", {"Reservations": found}, {"Filters": filters})

    def accept_command(self) -> None:
        self.add_instances(INSTANCE)
        self.ssm.add_response("send_command", {"Command": {"CommandId": COMMAND}})

    def answer(self, status: str, **more: Any) -> None:
        texts = {"StandardOutputContent": "", "StandardErrorContent": "", **more}
        self.ssm.add_response("get_command_invocation", {"Status": status, **texts})


@pytest.fixture
def stubs() -> Iterator[Stubs]:
    made = Stubs()
    yield made
    for stub in (made.ec2, made.ssm):
        stub.assert_no_pending_responses()


def test_output_is_returned_once_the_command_has_ended(stubs: Stubs) -> None:
    stubs.accept_command()
    stubs.ssm.add_client_error("get_command_invocation", "InvocationDoesNotExist")
    stubs.answer("InProgress")
    stubs.answer("Success", StandardOutputContent="7\n")
    assert stubs.login.run("sbatch") == "7\n"


def test_error_of_failed_command_has_its_standard_error(stubs: Stubs) -> None:
    stubs.accept_command()
    stubs.answer("Failed", StandardErrorContent="sbatch: error: Invalid partition\n")
    with pytest.raises(CommandFailedError, match="Invalid partition"):
        stubs.login.run("sbatch")


@pytest.mark.parametrize("status", ["TimedOut", "Cancelled"])
def test_timed_out_or_cancelled_command_may_have_been_run(stubs: Stubs, status: str) -> None:
    stubs.accept_command()
    stubs.answer("Cancelling")
    stubs.answer(status, StandardErrorContent="sbatch: waiting")
    with pytest.raises(NoAnswerError, match=f"{status}: sbatch: waiting"):
        stubs.login.run("sbatch")


def test_result_that_cannot_be_read_is_not_a_refusal(stubs: Stubs) -> None:
    stubs.accept_command()
    stubs.ssm.add_client_error("get_command_invocation", "AccessDeniedException")
    with pytest.raises(NoAnswerError, match="ssm:GetCommandInvocation"):
        stubs.login.run("sbatch")


def test_refused_command_names_the_permission(stubs: Stubs) -> None:
    stubs.add_instances(INSTANCE)
    stubs.ssm.add_client_error("send_command", "AccessDeniedException")
    with pytest.raises(RequestRefusedError, match="ssm:SendCommand"):
        stubs.login.run("sbatch")


def test_missing_login_node_is_unavailable(stubs: Stubs) -> None:
    stubs.add_instances()
    with pytest.raises(UnavailableError, match="login node is not running"):
        stubs.login.run("sbatch")
