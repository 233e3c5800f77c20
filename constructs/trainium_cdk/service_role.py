"""Roles for AWS services, and their permissions."""

from collections.abc import Mapping, Sequence
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
    assumed_by: iam.IPrincipal = principal  # pyright: ignore[reportAssignmentType]
    role: iam.IRole = iam.Role(scope, construct_id, assumed_by=assumed_by, path=path)  # pyright: ignore[reportAssignmentType]
    return role


def allow(
    role: iam.IRole, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Any] | None = None
) -> None:
    """Allow a role to perform actions on resources."""
    role.add_to_principal_policy(
        iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
    )


@cache
def _principal(service: str) -> iam.ServicePrincipal:
    return iam.ServicePrincipal(service)
