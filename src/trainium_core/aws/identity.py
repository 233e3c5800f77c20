"""The identity of the AWS credentials, from STS."""

from dataclasses import dataclass

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, is_aws


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
        """The user's name, or the role's and session's as `Admin/alice`: the ARN without account, type and path."""
        kind, _, name = self.arn.rpartition(":")[2].partition("/")
        return name if kind == "assumed-role" else name.rpartition("/")[2] or kind


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
