"""Refuses templates that CloudFormation refuses before it changes a resource, or that use unsupported features."""

import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from trainium_local.cloudformation.errors import ValidationError, unresolved
from trainium_local.cloudformation.intrinsic_functions import FUNCTIONS, IntrinsicFunctions, Lookup
from trainium_local.cloudformation.stack import STACK
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.values import Reference, functions, references, walk
from trainium_local.resources import registry, schemas
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY

_PSEUDO_PARAMETERS = frozenset(
    f"AWS::{name}"
    for name in ["AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix"]
)
_EXPORT_NAME = re.compile(r"[-A-Za-z0-9:_{}]{1,255}")  # braces mark unknown values


def check(template: Template, region: str) -> None:
    """Raise ValidationError for a template that cannot be deployed."""
    types = sorted({resource["Type"] for resource in template.resources.values()})
    unknown = [name for name in types if not schemas.is_custom(name) and schemas.find(name, region) is None]
    if unknown:
        raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
    unsupported = [name for name in types if registry.find(name) is None]
    if unsupported:
        raise ValidationError(
            f"The embedded AWS does not support resources of type [{', '.join(unsupported)}]. "
            "`trn local status --json` lists the types with an adapter"
        )
    for name, resource in template.resources.items():
        _check_properties(name, resource, region)
    used = functions([template.conditions, template.resources, template.outputs, template.rules])
    unknown_functions = sorted({name for name, _ in used} - FUNCTIONS)
    if unknown_functions:
        raise ValidationError(
            f"Template error: Encountered unsupported function: {unknown_functions[0]} Supported functions are: "
            f"[{', '.join(sorted(FUNCTIONS))}]"
        )
    if any(isinstance(part, str) and "{{resolve:" in part for _, part in walk(template.document)):
        raise ValidationError("The embedded AWS does not support dynamic references ({{resolve:...}})")
    _check_conditions(template)
    _check_references(template, region)
    _ = template.order


def _check_properties(logical_id: str, resource: Mapping[str, Any], region: str) -> None:
    """Refuse properties that the embedded AWS would ignore. Names that are not in the schema are refused elsewhere."""
    resource_type = resource["Type"]
    provisioner, schema = registry.find(resource_type), schemas.find(resource_type, region)
    known = resource.get("Properties", {}).keys() & schema.properties if schema else ()
    unsupported = provisioner.unsupported(known) if provisioner else ()
    if unsupported:
        raise ValidationError(
            f"The embedded AWS does not support [{', '.join(unsupported)}] of {resource_type} ({logical_id})"
        )


def _check_conditions(template: Template) -> None:
    needs = {name: set(_named_conditions(value)) for name, value in template.conditions.items()}
    used = {
        part["Condition"] for part in (*template.resources.values(), *template.outputs.values()) if "Condition" in part
    }
    in_ifs = {argument[0] for name, argument in functions([template.resources, template.outputs]) if name == "Fn::If"}
    unknown = sorted(used.union(in_ifs, *needs.values()) - needs.keys())
    if unknown:
        raise ValidationError(f"Template format error: Unresolved condition dependency {', '.join(unknown)}")
    resources = (
        {reference.name for reference in references(template.conditions)}
        - template.parameters.keys()
        - _PSEUDO_PARAMETERS
    )
    if resources:
        raise ValidationError(
            f"Template format error: Unresolved dependencies [{', '.join(sorted(resources))}]. "
            "Cannot reference resources in the Conditions block of the template"
        )
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        names = ", ".join(sorted(set(error.args[1])))
        raise ValidationError(f"Template format error: Circular dependency between conditions: [{names}]") from error


def _named_conditions(value: Any) -> Iterable[str]:
    return [part["Condition"] for _, part in walk(value) if isinstance(part, dict) and "Condition" in part]


def _check_references(template: Template, region: str) -> None:
    in_resources = [
        reference for part in template.resources.values() for reference in references(part.get("Properties"))
    ]
    in_outputs = [
        reference for part in template.outputs.values() for reference in references([part["Value"], part.get("Export")])
    ]
    needs = {Reference(name=need) for name in template.resources for need in template.needs(name)}
    parameters = template.parameters.keys() | _PSEUDO_PARAMETERS
    for section, targets in (("Resources", in_resources), ("Outputs", in_outputs)):
        _refuse_unresolved(targets, template.resources.keys() | parameters, section)
    _refuse_unresolved(needs, template.resources.keys(), "Resources")
    for reference in (*in_resources, *in_outputs):
        if reference.attribute is not None:
            _check_attribute(template, reference.name, reference.attribute, region)


def _refuse_unresolved(targets: Iterable[Reference], known: Iterable[str], section: str) -> None:
    names = sorted({target.name for target in targets} - set(known))
    if names:
        raise unresolved([f"{name}{schemas.did_you_mean(name, known)}" for name in names], section)


def _check_attribute(template: Template, name: str, attribute: str, region: str) -> None:
    if name not in template.resources:
        raise ValidationError(f"Template error: instance of Fn::GetAtt references undefined resource {name}")
    schema = schemas.find(template.resources[name]["Type"], region)
    known = [*schema.attributes, *schema.properties] if schema else []
    # the outputs of a nested stack depend on its template
    is_output = template.resources[name]["Type"] == STACK and attribute.startswith("Outputs.")
    if schema and attribute not in known and attribute.split(".")[0] not in schema.properties and not is_output:
        hint = schemas.did_you_mean(attribute, known)
        raise ValidationError(
            f"Template error: resource {name} does not support attribute type {attribute} in Fn::GetAtt{hint}"
        )


class _DryRun(Lookup):
    """A Lookup for resources that do not exist yet, and for stacks that may exist later."""

    def __init__(self, template: Template, parameters: Mapping[str, Any], region: str) -> None:
        self._template = template
        self._resolver = IntrinsicFunctions(template=template, parameters=parameters, lookup=self, region=region)
        self.section = "Resources"

    def ref(self, logical_id: str) -> str:
        resource = self._template.resources.get(logical_id)
        if resource is None or not self.is_created(resource):
            raise unresolved([logical_id], self.section)
        return KNOWN_AFTER_APPLY

    def is_created(self, part: Mapping[str, Any]) -> bool:
        return self._resolver.condition(part.get("Condition"))

    def resolve(self, value: Any) -> Any:
        return self._resolver.resolve(value)


def check_values(template: Template, parameters: Mapping[str, Any], region: str) -> None:
    """Refuse failed assertions of Rules and invalid function calls, as far as values are known.

    Raises:
        ValidationError: An assertion fails, or a call is invalid.
    """
    run = _DryRun(template, parameters, region)
    failed = [
        str(assertion.get("AssertDescription", f"an assertion of {name} does not hold"))
        for name, rule in template.rules.items()
        if "RuleCondition" not in rule or run.resolve(rule["RuleCondition"])
        for assertion in rule["Assertions"]
        if not run.resolve(assertion["Assert"])
    ]
    if failed:
        raise ValidationError(f"Rule assertions failed: {'; '.join(failed)}")
    for name in template.conditions:
        run.is_created({"Condition": name})
    for resource in filter(run.is_created, template.resources.values()):
        run.resolve(resource.get("Properties"))
    run.section = "Outputs"
    for key, output in template.outputs.items():
        if not run.is_created(output):
            continue
        if isinstance(run.resolve(output["Value"]), list | dict):
            raise ValidationError("Template format error: Every Value member must be a string.")
        if "Export" in output and not _EXPORT_NAME.fullmatch(str(run.resolve(output["Export"]["Name"]))):
            raise ValidationError(
                f"Template format error: Output {key} is malformed. The Name field of every Export member must be "
                "specified and consist only of alphanumeric characters, colons, or hyphens."
            )
