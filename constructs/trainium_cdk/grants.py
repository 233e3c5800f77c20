"""Errors for grants that the CDK rejects, and warnings for those that the owner of a bucket or key must complete."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from aws_cdk import Annotations, Stage
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import IConstruct, Node

from trainium_cdk.checks import first_line, refuse

_BY_ARN = (
    "for a step or a role of a pipeline, grant to its role by ARN, in the Stage: "
    "iam.Role.from_role_arn(stack, 'Runner', 'arn:aws:iam::ACCOUNT:role/NAME')"
)


@contextmanager
def granting(construct: IConstruct, grantee: Any) -> Generator[None]:
    """Raise PropsError if the CDK cannot grant permissions to the grantee."""
    allowed = "a principal whose policies the app can change, or that a policy of the resource can name"
    try:
        node = getattr(grantee.grant_principal, "node", None)
        if isinstance(node, Node) and _stage(node) != _stage(construct.node):
            allowed = "a principal of the same Stage, since policies cannot refer to another Stage"
            raise refuse(construct, "grantee", grantee, allowed=allowed, fix=_BY_ARN)
        yield
    except RuntimeError as error:
        fix = f"pass such a principal; {_BY_ARN}; the CDK reports: {first_line(error)}"
        raise refuse(construct, "grantee", grantee, allowed=allowed, fix=fix) from None


def _stage(node: Node) -> str:
    return next((scope.node.path for scope in reversed(node.scopes) if Stage.is_stage(scope)), "")


def warn_about_unchanged_policies(construct: IConstruct, grant: iam.Grant, bucket: s3.IBucket) -> None:
    """Warn if a grant needs a change to the policy of an imported bucket or key, which the CDK cannot make."""
    if not grant.resource_statements:
        return
    key = bucket.encryption_key
    imported = [
        *([] if isinstance(bucket, s3.Bucket) else [f"bucket {bucket.node.path}"]),
        *([] if key is None or isinstance(key, kms.Key) else [f"key {key.node.path}"]),
    ]
    if imported:
        Annotations.of(construct).add_warning_v2(
            "trn:grantee",
            f"the policy of the imported {' and of the imported '.join(imported)} is not changed here, and must "
            "allow what is granted to a principal of another account, or to one without a policy, such as a service",
        )
