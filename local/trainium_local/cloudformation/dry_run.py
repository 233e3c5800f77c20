"""A template's values as far as they are known before anything exists: what cannot be resolved is refused at once."""

import re
from collections.abc import Mapping
from typing import Any

from trainium_local.cloudformation.errors import ValidationError, unresolved
from trainium_local.cloudformation.intrinsic_functions import Resolver
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.values import with_texts
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY

# "{" and "}" for what is not known yet
_EXPORT_NAME = re.compile(r"[-A-Za-z0-9:_{}]{1,255}")


class _DryRun:
    """A Lookup of resources before they exist, and of stacks that may exist once they are needed."""

    def __init__(self, template: Template, parameters: Mapping[str, Any], region: str) -> None:
        self._template = template
        self._resolver = Resolver(template=template, parameters=parameters, lookup=self, region=region)
        self.section = "Resources"

    def ref(self, logical_id: str) -> str:
        resource = self._template.resources.get(logical_id)
        if resource is None or not self.stands(resource):
            raise unresolved([logical_id], self.section)
        return KNOWN_AFTER_APPLY

    def attribute(self, logical_id: str, name: str) -> str:  # noqa: ARG002
        return self.ref(logical_id)

    def export(self, name: str) -> str:  # noqa: ARG002
        return KNOWN_AFTER_APPLY

    def stack_output(self, region: str, stack_name: str, key: str) -> str:  # noqa: ARG002
        return KNOWN_AFTER_APPLY

    def stands(self, part: Mapping[str, Any]) -> bool:
        return self._resolver.condition(part.get("Condition"))

    def resolve(self, value: Any) -> Any:
        return self._resolver.resolve(
            with_texts(value, lambda text: KNOWN_AFTER_APPLY if "{{resolve:" in text else text)
        )


def check(template: Template, parameters: Mapping[str, Any], region: str) -> None:
    """Raise ValidationError for assertions of Rules that do not hold and for functions that cannot be applied.

    `parameters` has the pseudo parameters too.
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
        run.stands({"Condition": name})
    for resource in filter(run.stands, template.resources.values()):
        run.resolve(resource.get("Properties"))
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if isinstance(resource.get(policy), dict):
                if not template.transforms:
                    raise ValidationError(f"Template format error: Every {policy} member must be a string.")
                resource[policy] = run.resolve(resource[policy])
    run.section = "Outputs"
    exports = set[str]()
    for key, output in template.outputs.items():
        if not run.stands(output):
            continue
        if isinstance(run.resolve(output["Value"]), list | dict):
            raise ValidationError("Template format error: Every Value member must be a string.")
        if "Export" not in output:
            continue
        export = str(run.resolve(output["Export"]["Name"]))
        if not _EXPORT_NAME.fullmatch(export):
            raise ValidationError(
                f"Template format error: Output {key} is malformed. The Name field of every Export member must be "
                "specified and consist only of alphanumeric characters, colons, or hyphens."
            )
        if export in exports and export != KNOWN_AFTER_APPLY:
            raise ValidationError(
                f"Template format error: The Outputs section contains duplicate Export names: [{export}]. Specify a "
                "unique name for each export."
            )
        exports.add(export)
