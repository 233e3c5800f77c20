"""Extracts the actions of CloudFormation's handlers for the resource types in this repository's templates.

    python -m tools.permissions.cloudformation [TYPE...]

Writes src/trainium_core/data/cloudformation_permissions.toml: the types that it already contains, and the types given
as arguments. Uses the registry schemas that cfn-lint ships. Omits the handler `list`, which only lists resources.
Afterwards, pass the new actions to tools.permissions.service_authorization, then run this again: their dependent
actions come from service_authorization.toml.
"""

import argparse
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from textwrap import indent, wrap
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

TARGET = Path(__file__).parents[2] / "src/trainium_core/data/cloudformation_permissions.toml"
REGION = "us-west-2"
HANDLERS = ("create", "read", "update", "delete")

HEADER = """\
# The actions that CloudFormation's role must be allowed, by resource type.
# Written by `python -m tools.permissions.cloudformation`; some entries are maintained by hand in that script.
source = "handlers of the CloudFormation registry's schemas, as in cfn-lint {version}"
date = 2026-11-22
"""

LEFT_OUT = (
    "autoloop",
    "billing",
    "codewhisperer",
    "ecr",
    "firehose",
    "inspector2",
    "managed-fleets",
    "s3files",
    "s3tables",
    "vpc-lattice",
    "vpce",
    "workmail",
)
"""Prefixes of actions that the handlers need only for properties that no template here uses."""

INSTEAD = {
    "iam:DeleteGroupPolicy": None,
    "iam:DeleteUserPolicy": None,
    "iam:GetGroupPolicy": None,
    "iam:GetUserPolicy": None,
    "iam:PutGroupPolicy": None,
    "iam:PutUserPolicy": None,
    "lambda:AssociateRuntimeAlias": None,
    "s3:DeleteBucketAnalyticsConfiguration": None,
    "s3:DeleteBucketCors": "s3:PutBucketCORS",
    "s3:DeleteBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:DeleteBucketLifecycle": "s3:PutLifecycleConfiguration",
    "s3:DeleteBucketMetricsConfiguration": None,
    "s3:DeleteBucketReplication": "s3:PutReplicationConfiguration",
    "s3:PutBucketReplication": "s3:PutReplicationConfiguration",
    "s3:PutObjectLockConfiguration": "s3:PutBucketObjectLockConfiguration",
    "logs:AllowVendedLogDeliveryForResource": "pcs:AllowVendedLogDeliveryForResource",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:REST.PUT.OBJECT": None,
    "s3:UpdateBucketMetadataAnnotationTableConfiguration": None,
    "ssm:Get*": "ssm:GetParameters",
}
"""Replacements of names in schemas: the IAM action of an operation, or None for actions that only serve properties that
no template here uses, such as the users and groups of a policy.

The handler of Auto Scaling groups has `ssm:Get*`, for the image of a launch template.
"""

NOT_NEEDED = {
    "billing:GetBillingViewData": "for budgets of a billing view",
    "ecr:DescribeRepositories": "for container recipes",
    "imagebuilder:GetImagePipeline": "for images of a pipeline",
    "fsx:CreateBackup": "for file systems with a final backup",
}
"""Dependent actions in the Service Authorization Reference for features that no template here uses."""

ALSO: dict[str, list[str]] = {
    # Image Builder API reference: deletes the image of a resource with DeletionSettings. The handlers omit it.
    "AWS::ImageBuilder::Image": ["imagebuilder:StartResourceStateUpdate"],
    # AWS PCS User Guide, minimum permissions: actions that the handlers omit.
    "AWS::PCS::Cluster": ["secretsmanager:RotateSecret"],
    "AWS::PCS::ComputeNodeGroup": [
        "ec2:DescribeCapacityBlockStatus",
        "ec2:DescribeCapacityBlocks",
        "ec2:DescribeCapacityReservations",
    ],
}

BY_HAND: dict[str, list[str]] = {
    # Its schema lists no handlers. Source: FSx for Lustre User Guide, permissions required to create file systems.
    "AWS::FSx::FileSystem": [
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
        "fsx:CreateFileSystem",
        "fsx:DeleteFileSystem",
        "fsx:DescribeFileSystems",
        "fsx:TagResource",
        "fsx:UntagResource",
        "fsx:UpdateFileSystem",
        "iam:CreateServiceLinkedRole",
    ],
    # CloudFormation calls the function behind a custom resource with the stack's role.
    "Custom": ["lambda:InvokeFunction"],
    # For template parameters with values from SSM parameters, and for assets of the CDK.
    "Template": ["s3:GetObject", "ssm:GetParameters"],
}


def known() -> list[str]:
    """The types in the file."""
    return list(tomllib.loads(TARGET.read_text())["types"]) if TARGET.exists() else []


def dependent(actions: Iterable[str]) -> set[str]:
    """The further actions that the caller of some actions needs, from the Service Authorization Reference."""
    reference = tomllib.loads((TARGET.parent / "service_authorization.toml").read_text())["actions"]
    split = (action.partition(":") for action in actions)
    rows = (reference.get(prefix, {}).get(name, {}) for prefix, _, name in split)
    actions_needed = {action for row in rows for action in row.get("dependent", ())}
    return {
        action for action in actions_needed if action not in NOT_NEEDED and action.partition(":")[0] not in LEFT_OUT
    }


def actions_of(resource_type: str) -> list[str]:
    """The actions that the handlers of a type call, with their dependent actions."""
    called = _called(resource_type)
    return sorted({*called, *dependent(called)})


def _called(resource_type: str) -> list[str]:
    if resource_type in BY_HAND:
        return BY_HAND[resource_type]
    schemas: Any = PROVIDER_SCHEMA_MANAGER
    handlers: dict[str, Any] = schemas.get_resource_schema(REGION, resource_type).schema.get("handlers", {})
    listed = {action for name in HANDLERS for action in handlers.get(name, {}).get("permissions", ())}
    called = {prefix.lower() + colon + name for prefix, colon, name in (action.partition(":") for action in listed)}
    called |= {*ALSO.get(resource_type, ())}
    named = {INSTEAD.get(action, action) for action in called if action.partition(":")[0] not in LEFT_OUT}
    return sorted(action for action in named if action is not None)


def rows(types: list[str]) -> Iterator[str]:
    """The lines of the file."""
    yield "\n[types]"
    for resource_type in types:
        yield f'"{resource_type}" = ['
        yield indent("\n".join(wrap(" ".join(f'"{action}",' for action in actions_of(resource_type)), 116)), "  ")
        yield "]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*")
    types = sorted({*known(), *BY_HAND, *parser.parse_args().types})
    TARGET.write_text(HEADER.format(version=version("cfn-lint")) + "\n".join(rows(types)) + "\n")


if __name__ == "__main__":
    main()
