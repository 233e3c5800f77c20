"""The identity of the AWS credentials, from STS."""

import re
from dataclasses import dataclass

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, is_aws

_GENERATED = re.compile(r"botocore-session-\d+|1\d{18}")
"""A session's name that is the time at which it began, in seconds or, until 2033, in nanoseconds. Sources: botocore
1.44, credentials.py: without role_session_name, each process has a new one; aws-vault 7,
vault/assumeroleprovider.go."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of the AWS credentials.

    Attributes:
        account: Account ID.
        arn: ARN of the user, or of the session of a role.
        endpoint: URL of the endpoint that answered, such as an emulator's; None for AWS.
    """

    account: str
    arn: str
    endpoint: str | None = None

    @property
    def name(self) -> str:
        """The user's name, or the role's and session's as `Admin/alice`: the ARN without account, type and path.

        Without the session if a tool named it by the time, because the user's next session has another name.
        """
        kind, _, name = self.arn.rpartition(":")[2].partition("/")
        if kind != "assumed-role":
            return name.rpartition("/")[2] or kind
        return name.partition("/")[0] if self.has_generated_session else name

    @property
    def has_generated_session(self) -> bool:
        """Whether a tool named the role's session by the time."""
        return bool(_GENERATED.fullmatch(self.arn.rpartition("/")[2])) and ":assumed-role/" in self.arn


class AwsIdentities(AwsService):
    def identity(self) -> Identity:
        """The identity of the credentials.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        sts = self.client("sts")
        endpoint = None if is_aws(str(sts.meta.endpoint_url)) else str(sts.meta.endpoint_url)
        with read_errors("sts:GetCallerIdentity"):
            answer = sts.get_caller_identity()
            return Identity(account=answer["Account"], arn=answer["Arn"], endpoint=endpoint)
