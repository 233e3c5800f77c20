"""An AWS account as training jobs see it, asked through boto3. Nothing here changes anything."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from trainium_core.engines.sagemaker.job_checks.account import Role
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.permissions.aws_simulation import AwsSimulation
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_core.storage.aws_storage import AwsBuckets
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_quotas import AwsQuotas
from trainium_runtime.aws_service import AwsService

_NO_IMAGE = ("RepositoryNotFoundException",)


class AwsRoles(AwsService):
    def role(self, name: str) -> Role | None:
        with read_errors("iam:GetRole", absent=("NoSuchEntity",)):
            found = self.client("iam").get_role(RoleName=name)["Role"]
            return Role(arn=found["Arn"], trusted_services=frozenset(_services(found["AssumeRolePolicyDocument"])))
        return None


class AwsContainerImages(AwsService):
    def has_image(self, *, account: str, region: str, repository: str, reference: Mapping[str, str]) -> bool:
        # What a pull asks too, and what the policies of AWS's repositories allow everybody.
        with read_errors("ecr:BatchGetImage", absent=_NO_IMAGE):
            answer = self._clients.client("ecr", region).batch_get_image(
                registryId=account, repositoryName=repository, imageIds=[dict(reference)]
            )
            return bool(answer["images"])
        return False


class AwsSageMakerAccount(
    AwsIdentities, AwsQuotas, AwsPrices, AwsRoles, AwsSimulation, AwsContainerImages, AwsBuckets, AwsStacks
):
    """Implements job_checks.account.SageMakerAccount for the credentials that boto3 finds."""


def _services(policy: Any) -> Iterator[str]:
    """The services that an assume-role policy trusts; boto3 gives it decoded, others as text."""
    document = json.loads(unquote(policy)) if isinstance(policy, str) else policy
    for statement in document["Statement"]:
        trusted = statement.get("Principal", {})
        if statement["Effect"] == "Allow" and isinstance(trusted, dict):
            services = cast(Mapping[str, Any], trusted).get("Service", [])
            yield from [services] if isinstance(services, str) else services
