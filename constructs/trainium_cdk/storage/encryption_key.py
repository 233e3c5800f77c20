"""Checks of KMS keys at synthesis, and permissions on them."""

from typing import Any, cast

from aws_cdk import Annotations, FeatureFlags, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from trainium_cdk.cdk_types import Key
from trainium_cdk.checks import check_same_region, refuse

_GRANTS_BY_ALIAS = "@aws-cdk/aws-kms:applyImportedAliasPermissionsToPrincipal"
"""The feature flag without which the CDK ignores grants on an imported alias."""


def check_key(construct: IConstruct, parameter: str, key: Key | None) -> None:
    """Raise PropsError for a key in another region, a disabled key, and a key of another spec than
    SYMMETRIC_DEFAULT.

    Aliases are accepted: a launch template refers to a key by its ID, alias, ARN or alias ARN (botocore 1.44.5,
    LaunchTemplateEbsBlockDeviceRequest).
    """
    if key is None:
        return
    check_same_region(construct, parameter, key, what="a key")
    resource: Any = key.node.default_child
    if isinstance(resource, kms.CfnKey) and resource.enabled is False:
        allowed = "a key that is enabled"
        raise refuse(construct, parameter, key.node.path, allowed=allowed, fix="remove its enabled=False")
    spec = resource.key_spec if isinstance(resource, kms.CfnKey) else None
    if spec is not None and not Token.is_unresolved(spec) and spec != "SYMMETRIC_DEFAULT":
        allowed = "a key of the spec SYMMETRIC_DEFAULT, which EBS and S3 require"
        raise refuse(construct, parameter, f"{key.node.path}, {spec}", allowed=allowed, fix="remove its key_spec")


def check_granting_key(construct: IConstruct, parameter: str, key: Key | None) -> None:
    """Raise PropsError like check_key, and for an imported alias, on which no permissions can be granted."""
    check_key(construct, parameter, key)
    if key is None:
        return
    by_arn = not Token.is_unresolved(key.key_arn) and ":alias/" in key.key_arn
    by_name = not isinstance(key, kms.Alias) and hasattr(key, "alias_name")
    if by_arn or (by_name and not FeatureFlags.of(construct).is_enabled(_GRANTS_BY_ALIAS)):
        raise refuse(
            construct,
            parameter,
            key.node.path,
            allowed="a key whose ARN is known: IAM cannot grant permissions on an alias",
            fix="pass kms.Key.from_key_arn(...) of the key, or kms.Alias.from_alias_name with the feature flag "
            f"{_GRANTS_BY_ALIAS}",
        )


def allow_service(construct: IConstruct, parameter: str, key: Key, service: str) -> None:
    """Allow a service to publish to SNS topics that are encrypted with a key.

    Source: CloudWatch User Guide, notifying users on alarm changes. The policies of the topics limit who publishes.
    """
    actions = ["kms:Decrypt", "kms:GenerateDataKey*"]
    principal: Any = iam.ServicePrincipal(service)
    statement = iam.PolicyStatement(principals=[principal], actions=actions, resources=["*"])
    if not cast(kms.IKey, key).add_to_resource_policy(statement).statement_added:
        Annotations.of(construct).add_warning_v2(
            f"trn:{parameter}",
            f"the policy of an imported {parameter} is not changed here: it must allow {service} the actions "
            f"{' and '.join(actions)}, or notices of this service are lost",
        )
