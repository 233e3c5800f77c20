"""Permissions of the nodes' role for sessions and jobs, without those on the cluster's bucket."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.service_role import allow
from trainium_cdk.storage.disposable_bucket import allow_objects
from trainium_core.plan.settings.jobs import JobAccess

_READ = ("s3:GetObject", "s3:ListBucket")
_SECRET_ACTIONS = {"secretsmanager": "secretsmanager:GetSecretValue", "ssm": "ssm:GetParameter"}

# The least that Session Manager needs (Systems Manager documentation, minimum permissions for a session).
_SESSION_ACTIONS = [
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
]


def allow_sessions(role: iam.IRole) -> bool:
    """Grant a role the permissions of Session Manager. False if the policies of the role cannot be changed."""
    sessions = iam.PolicyStatement(actions=_SESSION_ACTIONS, resources=["*"])
    return role.add_to_principal_policy(sessions).statement_added


def allow_jobs(scope: Construct, role: iam.IRole, access: JobAccess) -> None:
    """Allow a role to read the inputs and secrets of jobs, and to read and write their checkpoints.

    If a bucket or secret is encrypted with a customer managed KMS key, the policy of the key must allow the role
    kms:Decrypt, and for checkpoints also kms:GenerateDataKey.
    """
    for number, (url, actions) in enumerate(_folders(access)):
        place = urlsplit(url)
        bucket = s3.Bucket.from_bucket_name(scope, f"JobFolder{number}", place.netloc)
        allow_objects(bucket, role, {place.path.strip("/"): actions})
    for service, action in _SECRET_ACTIONS.items():
        arns = [arn for arn in access.secrets if arn.split(":")[2] == service]
        if arns:
            allow(role, [action], arns)


def _folders(access: JobAccess) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from ((url, _READ) for url in access.inputs)
    if access.checkpoints:
        yield access.checkpoints, (*_READ, "s3:PutObject")
