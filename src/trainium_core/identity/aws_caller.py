"""Reads the caller's identity from STS."""

from trainium_core.identity.caller import Identity
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, is_aws


class AwsIdentities(AwsService):
    def identity(self) -> Identity:
        sts = self.client("sts")
        endpoint = None if is_aws(str(sts.meta.endpoint_url)) else str(sts.meta.endpoint_url)
        with read_errors("sts:GetCallerIdentity"):
            answer = sts.get_caller_identity()
            return Identity(account=answer["Account"], arn=answer["Arn"], endpoint=endpoint)
