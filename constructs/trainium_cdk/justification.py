"""Acknowledges findings of cdk-nag and checkov, with a reason, in the resource's metadata."""

import json
from collections.abc import Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

import jsii
from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import IConstruct, IValidation


def justify(
    construct: IConstruct, *, cdk_nag: Mapping[str, str] | None = None, checkov: Mapping[str, str] | None = None
) -> None:
    """Acknowledge findings, given as rule id to reason.

    Ids of cdk-nag are without their prefix, such as `IAM5[Resource::*]`. Those of checkov are added to the metadata of
    every CloudFormation resource of the construct.
    """
    if cdk_nag:
        acknowledged = [Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason) for rule, reason in cdk_nag.items()]
        _validations(construct).acknowledge(*acknowledged)
    if checkov:
        skips = [{"id": rule, "comment": reason} for rule, reason in checkov.items()]
        resources = [construct] if isinstance(construct, CfnResource) else construct.node.find_all()
        for resource in resources:
            if isinstance(resource, CfnResource):
                resource.add_metadata("checkov", {"skip": skips})


def justify_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Acknowledge a wildcard resource in the construct's policies."""
    justify_wildcards(construct, {resource: reason})


def justify_wildcards(construct: IConstruct, wildcards: Mapping[str, str], *, of: IConstruct | None = None) -> None:
    """Acknowledge wildcard resources in the construct's policies, such as the objects under a prefix.

    Args:
        wildcards: A reason for each resource.
        of: The construct that owns the resources. If it is in another stack, the findings contain the name of an
            export, which is known only at the end of the synthesis. Default: one in the same stack.
    """
    acknowledgement = _Wildcards(construct, wildcards)
    if of is not None and Stack.of(of) is not Stack.of(construct):
        construct.node.add_validation(acknowledgement)
    else:
        acknowledgement.validate()


@jsii.implements(IValidation)
class _Wildcards:
    """Acknowledges findings during the validation, and reports no errors."""

    def __init__(self, construct: IConstruct, wildcards: Mapping[str, str]) -> None:
        self._construct, self._wildcards = construct, wildcards

    def validate(self) -> list[str]:
        resources = [*self._wildcards]
        if resources != ["*"]:
            resources = Stack.of(self._construct).resolve(resources)
        reasons = zip(resources, self._wildcards.values(), strict=True)
        justify(self._construct, cdk_nag={f"IAM5[Resource::{_as_printed(arn)}]": reason for arn, reason in reasons})
        return []


_VALIDATIONS: WeakKeyDictionary[IConstruct, Validations] = WeakKeyDictionary()


def _validations(construct: IConstruct) -> Validations:
    """The acknowledgements of a construct, cached: reading them from the CDK takes as long as adding one."""
    validations = _VALIDATIONS.get(construct)
    if validations is None:
        validations = _VALIDATIONS[construct] = Validations.of(construct)
    return validations


def _as_printed(value: Any) -> str:
    """An ARN as cdk-nag prints it, with `<LogicalId.Attribute>` for tokens."""
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
