"""The template by which a stack was made, and whose stack it is by that."""

from collections.abc import Mapping
from typing import Any, cast

from trainium_core.stacks.cluster_resources import TemplateResources, clusters_in
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG


class AwsStackTemplates(AwsService):
    def template_resources(self, stack_id: str, status: str) -> TemplateResources:
        """Of a stack in that status, which may be deleted. Raises UnavailableError."""
        if status == "REVIEW_IN_PROGRESS":
            return {}
        with read_errors("cloudformation:GetTemplate", absent=("does not exist",)):
            body = self.client("cloudformation").get_template(StackName=stack_id)["TemplateBody"]
            if not isinstance(body, Mapping):
                raise UnavailableError(f"the template of {stack_id} is not JSON: this package did not make it")
            return cast(Mapping[str, Any], body).get("Resources", {})
        return {}


def cluster_of(tags: Mapping[str, str], resources: TemplateResources) -> str | None:
    """By the tag of a stack, or that of its resources: the CDK tags these, and stacks only if configured so."""
    if CLUSTER_TAG in tags:
        return tags[CLUSTER_TAG]
    return next(iter(clusters_in(resources)), None)
