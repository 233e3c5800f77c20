"""From a request to what can be deployed: template checked, parameters resolved, tags merged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trainium_local.cloudformation import capabilities, dry_run
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.intrinsic_functions import Lookup, Resolver
from trainium_local.cloudformation.parameters import resolve
from trainium_local.cloudformation.stack import Deployment, Region, Stack, StackResource, region_of
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.template_checks import check
from trainium_local.resources import schemas
from trainium_local.resources.registry import Properties, WithLiveAttributes
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY

_OF_THE_STACK = ("AWS::NotificationARNs", "AWS::StackId", "AWS::StackName")
"""Pseudo parameters that are not known before the stack is."""


def prepare(
    region: Region,
    body: str,
    given: Mapping[str, str],
    tags: Mapping[str, str],
    acknowledged: Collection[str],
    *,
    expands: bool = True,
) -> Deployment:
    """Raises ValidationError for all that can be refused before anything is touched.

    `acknowledged` are the caller's capabilities; `expands`: the caller has not reviewed what transforms make of it.
    """
    template = Template.parse(body)
    check(template, region.name)
    capabilities.check(template, acknowledged, expands=expands)
    parameters = resolve(template, given, region.name)
    values = {name: parameter.value for name, parameter in parameters.items()}
    values |= pseudo_parameters(region) | dict.fromkeys(_OF_THE_STACK, KNOWN_AFTER_APPLY)
    template = template.with_parameters(values)
    check(template, region.name)
    dry_run.check(template, values, region.name)
    return Deployment(template=template, parameters=parameters, tags=dict(tags), capabilities=frozenset(acknowledged))


def pseudo_parameters(region: Region) -> dict[str, Any]:
    """Those that are the same for all stacks of the region."""
    return {
        "AWS::AccountId": region.account,
        "AWS::Partition": "aws",
        "AWS::Region": region.name,
        "AWS::URLSuffix": "amazonaws.com",
    }


class ExistingResources:
    """`Ref` and `Fn::GetAtt` on the resources that a stack has."""

    def __init__(self, resources: Mapping[str, StackResource], region: str) -> None:
        self._resources, self._region = resources, region

    def ref(self, logical_id: str) -> str:
        return self._get(logical_id).provisioned.physical_id

    def attribute(self, logical_id: str, name: str) -> Any:
        resource = self._get(logical_id)
        attributes = resource.provisioned.attributes
        if isinstance(resource.provisioner, WithLiveAttributes):
            attributes = attributes | resource.provisioner.attributes_now(self._region, resource.physical_id)
        if name in attributes:
            return attributes[name]
        value: Any = resource.properties
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            return value
        if schemas.is_custom(resource.resource_type):
            raise ValidationError(
                f"CustomResource attribute error: Vendor response doesn't contain {name} attribute in object "
                f"{resource.provisioned.physical_id}"
            )
        raise ValidationError(
            f"the embedded AWS does not know the attribute {name} of {resource.resource_type} ({logical_id})"
        )

    def _get(self, logical_id: str) -> StackResource:
        if logical_id not in self._resources:
            raise ValidationError(f"Unresolved resource dependencies [{logical_id}]: its condition is false")
        return self._resources[logical_id]


def resolver(region: Region, stack: Stack, deployment: Deployment, lookup: Lookup) -> Resolver:
    """Resolves the deployment's values for the stack."""
    pseudo = pseudo_parameters(region) | {
        "AWS::NotificationARNs": stack.settings.get("NotificationARNs") or [],
        "AWS::StackId": stack.stack_id,
        "AWS::StackName": stack.name,
    }
    return Resolver(
        template=deployment.template,
        parameters=pseudo | {name: parameter.value for name, parameter in deployment.parameters.items()},
        lookup=lookup,
        exports={name: value for name, (_, value) in region.exports().items()},
        stack_output=lambda other, name, key: region_of(stack.account, other).get(name).output(key),
        region=stack.region,
    )


def with_stack_tags(resource_type: str, region: str, properties: Properties, tags: Mapping[str, str]) -> Properties:
    """The stack's tags go onto every resource that takes tags; its own win."""
    schema = schemas.find(resource_type, region)
    if not tags or schema is None or schema.tag_property is None:
        return properties
    own = properties.get(schema.tag_property)
    if schema.tags_are_a_map:
        return {**properties, schema.tag_property: {**tags, **(own or {})}}
    taken = {tag["Key"] for tag in own or []}
    added = [{"Key": key, "Value": value} for key, value in tags.items() if key not in taken]
    return {**properties, schema.tag_property: [*(own or []), *added]}
