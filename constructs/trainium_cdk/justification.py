"""Why a finding of cdk-nag or checkov does not apply to a resource, kept on the resource itself."""

from collections.abc import Mapping
from typing import Any, cast

from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import IConstruct


def justify(
    construct: IConstruct, *, cdk_nag: Mapping[str, str] | None = None, checkov: Mapping[str, str] | None = None
) -> None:
    """Acknowledge findings: rule id to reason.

    cdk-nag's ids are those it prints without their prefix, such as `IAM5[Resource::*]`. checkov's go into the metadata
    of every CloudFormation resource of the construct.
    """
    if cdk_nag:
        acknowledged = [Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason) for rule, reason in cdk_nag.items()]
        Validations.of(construct).acknowledge(*acknowledged)
    if checkov:
        skips = [{"id": rule, "comment": reason} for rule, reason in checkov.items()]
        for child in construct.node.find_all():
            if isinstance(child, CfnResource):
                child.add_metadata("checkov", {"skip": skips})


def justify_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Acknowledge that a policy of the construct names resources by a wildcard, such as the objects under a prefix."""
    justify(construct, cdk_nag={f"IAM5[Resource::{_as_printed(Stack.of(construct).resolve(resource))}]": reason})


def _as_printed(value: Any) -> str:
    """An ARN as cdk-nag prints it: `<LogicalId.Attribute>` for what CloudFormation fills in."""
    if isinstance(value, str):
        return value
    (function, argument), *_ = cast(dict[str, Any], value).items()
    if function == "Fn::Join":
        return str(argument[0]).join(_as_printed(part) for part in argument[1])
    return f"<{argument if function == 'Ref' else '.'.join(argument)}>"
