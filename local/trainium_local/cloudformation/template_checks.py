"""What CloudFormation refuses in a template before it touches anything."""

from __future__ import annotations

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.references import references
from trainium_local.cloudformation.template import Template
from trainium_local.resources import registry, schemas

_SECTIONS = frozenset(
    [
        "AWSTemplateFormatVersion",
        "Description",
        "Metadata",
        "Parameters",
        "Rules",
        "Mappings",
        "Conditions",
        "Transform",
        "Resources",
        "Outputs",
    ]
)
_RESOURCE_KEYS = frozenset(
    [
        "Type",
        "Properties",
        "DependsOn",
        "Condition",
        "Metadata",
        "DeletionPolicy",
        "UpdateReplacePolicy",
        "CreationPolicy",
        "UpdatePolicy",
    ]
)
_PSEUDO_PARAMETERS = frozenset(
    f"AWS::{name}"
    for name in ["AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix"]
)
_EXPANDED_HERE = {"AWS::LanguageExtensions"}


def check(template: Template, region: str) -> None:
    """Refuse what cannot be deployed: raises ValidationError."""
    _check_structure(template)
    types = sorted({resource["Type"] for resource in template.resources.values()})
    unknown = [name for name in types if registry.find(name, region) is None]
    if unknown:
        raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
    _check_references(template, region)
    _ = template.order


def _check_structure(template: Template) -> None:
    strange = sorted(template.document.keys() - _SECTIONS)
    if strange:
        raise ValidationError(f"Invalid template property or properties [{', '.join(strange)}]")
    transforms = template.document.get("Transform") or []
    if set([transforms] if isinstance(transforms, str) else transforms) - _EXPANDED_HERE:
        raise ValidationError(f"The embedded AWS expands no transforms, the template asks for {transforms}")
    for name, resource in template.resources.items():
        if "Type" not in resource:
            raise ValidationError(f"Template format error: [/Resources/{name}] has no Type")
        strange = sorted(resource.keys() - _RESOURCE_KEYS)
        if strange:
            hint = schemas.did_you_mean(strange[0], _RESOURCE_KEYS)
            raise ValidationError(f"Invalid template resource property '{strange[0]}' of {name}{hint}")


def _check_references(template: Template, region: str) -> None:
    places = [part.get("Properties") for part in template.resources.values()]
    places += [part.get("Value") for part in template.outputs.values()]
    found = [reference for place in places for reference in references(place)]
    known = template.resources.keys() | template.parameters.keys() | _PSEUDO_PARAMETERS
    unresolved = {reference.name for reference in found} - known
    unresolved |= {need for name in template.resources for need in template.needs(name)} - template.resources.keys()
    if unresolved:
        names = ", ".join(f"{name}{schemas.did_you_mean(name, known)}" for name in sorted(unresolved))
        raise ValidationError(
            f"Template format error: Unresolved resource dependencies [{names}] in the Resources block of the template"
        )
    asked = {
        part["Condition"] for part in (*template.resources.values(), *template.outputs.values()) if "Condition" in part
    }
    if asked - template.conditions.keys():
        raise ValidationError(
            f"Template format error: Unresolved conditions {sorted(asked - template.conditions.keys())}"
        )
    for reference in found:
        if reference.attribute is not None:
            _check_attribute(template, reference.name, reference.attribute, region)


def _check_attribute(template: Template, name: str, attribute: str, region: str) -> None:
    if name not in template.resources:
        raise ValidationError(f"Template error: instance of Fn::GetAtt references undefined resource {name}")
    if attribute.startswith("Outputs."):  # those of a nested stack
        return
    schema = schemas.find(template.resources[name]["Type"], region)
    known = [*schema.attributes, *schema.properties] if schema else []
    if schema and attribute not in known and attribute.split(".")[0] not in schema.properties:
        hint = schemas.did_you_mean(attribute, known)
        raise ValidationError(
            f"Template error: resource {name} does not support attribute type {attribute} in Fn::GetAtt{hint}"
        )
