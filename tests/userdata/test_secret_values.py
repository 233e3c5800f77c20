"""Reading secrets from Systems Manager and Secrets Manager, which many nodes do at once when a job starts."""

from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from trn_node import files
from trn_node.secret_values import secret_value

ARNS = (
    "arn:aws:ssm:us-west-2:123456789012:parameter/token",
    "arn:aws:secretsmanager:us-west-2:123456789012:secret:token-abc123",
)


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"ROOT": str(tmp_path), "TRN_HTTP_PAUSE": "0", "TRN_HTTP_RETRIES": "3", **aws.loopback_environment}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    files.write(files.LOCATIONS, f"TRN_REGION={aws.region}\n")


@pytest.mark.parametrize("arn", ARNS)
def test_throttled_request_is_retried(aws: AwsStandIn, arn: str) -> None:
    aws.secrets[arn] = "value"
    aws.throttled = 2
    assert secret_value(arn) == "value"


@pytest.mark.parametrize("arn", ARNS)
def test_request_that_stays_throttled_names_the_reason(aws: AwsStandIn, arn: str) -> None:
    aws.throttled = 100
    with pytest.raises(OSError, match=f"{arn}: ThrottlingException Rate exceeded"):
        secret_value(arn)
