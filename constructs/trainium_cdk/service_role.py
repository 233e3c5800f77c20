"""A role for one AWS service."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_iam as iam
from constructs import Construct


def service_role(
    scope: Construct, construct_id: str, service: str, *, conditions: Mapping[str, Any] | None = None
) -> iam.IRole:
    """A role without any permission yet that only the service, such as `lambda.amazonaws.com`, can take.

    conditions: what must hold besides, as IAM writes it. Default: nothing.
    """
    # The generated classes name some parameters otherwise than the interfaces they implement.
    principal: iam.IPrincipal = iam.ServicePrincipal(service, conditions=conditions)  # pyright: ignore[reportAssignmentType]
    role: iam.IRole = iam.Role(scope, construct_id, assumed_by=principal)  # pyright: ignore[reportAssignmentType]
    return role
