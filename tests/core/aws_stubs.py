"""AWS clients with stubbed responses."""

from botocore.stub import Stubber

from trainium_core.preflight.aws_account import AwsAccount

REGION = "us-west-2"


def stubbed(service: str) -> tuple[AwsAccount, Stubber]:
    """An account whose responses from one service are stubbed and validated by botocore's model of the service."""
    account = AwsAccount(REGION)
    stub = Stubber(account.client(service))
    stub.activate()
    return account, stub
