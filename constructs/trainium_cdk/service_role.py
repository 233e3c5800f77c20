"""A role for one AWS service."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_cdk import aws_iam as iam
from constructs import Construct


def service_role(
    scope: Construct,
    construct_id: str,
    service: str,
    *,
    conditions: Mapping[str, Any] | None = None,
    path: str | None = None,
) -> iam.IRole:
    """A role without permissions that only the service, such as `lambda.amazonaws.com`, can assume.

    Args:
        conditions: Conditions of the trust policy. Default: none.
        path: Path of the role in IAM. Default: /.
    """
    # In the generated classes some parameters have other names than in the interfaces.
    principal = _principal(service) if conditions is None else iam.ServicePrincipal(service, conditions=conditions)
    as_the_cdk_has_it: iam.IPrincipal = principal  # pyright: ignore[reportAssignmentType]
    role: iam.IRole = iam.Role(scope, construct_id, assumed_by=as_the_cdk_has_it, path=path)  # pyright: ignore[reportAssignmentType]
    return role


@cache
def _principal(service: str) -> iam.ServicePrincipal:
    return iam.ServicePrincipal(service)
