"""Why a finding of cdk-nag or checkov does not apply to a resource, kept on the resource itself."""

import json
from collections.abc import Mapping
from typing import Any, cast

import jsii
from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import IConstruct, IValidation


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


def justify_wildcard(construct: IConstruct, resource: str, reason: str, *, of: IConstruct | None = None) -> None:
    """Acknowledge that a policy of the construct names resources by a wildcard, such as the objects under a prefix.

    of: what the resources are of. Where that is in another stack, CDK decides about the name only when all is made.
    """
    wildcard = _Wildcard(construct, resource, reason)
    if of is not None and Stack.of(of) is not Stack.of(construct):
        construct.node.add_validation(wildcard)
    else:
        wildcard.validate()


@jsii.implements(IValidation)
class _Wildcard:
    """Acknowledges when it is validated, and finds nothing wrong."""

    def __init__(self, construct: IConstruct, resource: str, reason: str) -> None:
        self._construct, self._resource, self._reason = construct, resource, reason

    def validate(self) -> list[str]:
        printed = _as_printed(Stack.of(self._construct).resolve(self._resource))
        justify(self._construct, cdk_nag={f"IAM5[Resource::{printed}]": self._reason})
        return []


def _as_printed(value: Any) -> str:
    """An ARN as cdk-nag prints it: `<LogicalId.Attribute>` for what CloudFormation fills in."""
    if isinstance(value, str):
        return value
    (function, argument), *_ = cast(dict[str, Any], value).items()
    if function == "Fn::Join":
        return str(argument[0]).join(_as_printed(part) for part in argument[1])
    if function == "Fn::ImportValue":
        return _as_printed(argument)
    if function == "Ref":
        return f"<{argument}>"
    if function == "Fn::GetAtt":
        return f"<{'.'.join(argument)}>"
    return json.dumps(value, separators=(",", ":"))
