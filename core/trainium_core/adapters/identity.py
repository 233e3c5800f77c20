"""Asks STS."""

from urllib.parse import urlsplit

from trainium_core.account import Identity
from trainium_core.adapters.aws_service import AwsService, asking


class AwsIdentities(AwsService):
    def identity(self) -> Identity:
        with asking("sts:GetCallerIdentity"):
            answer = self.client("sts").get_caller_identity()
        endpoint = str(self.client("sts").meta.endpoint_url)
        return Identity(account=answer["Account"], arn=answer["Arn"], endpoint=None if _is_aws(endpoint) else endpoint)


def _is_aws(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
