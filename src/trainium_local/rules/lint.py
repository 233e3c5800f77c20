"""cfn-lint's rules about the properties of a resource, such as those that read policies and definitions as JSON.

Only errors are used, and only rules that need nothing but resolved properties, without lists of what a region offers:
they lack new instance types, and the services of the embedded AWS check those. The schemas of the types are checked in
`trainium_local.resources.schemas`.
"""

import importlib
import pkgutil
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import cfnlint.rules.resources
from cfnlint.context import Path
from cfnlint.rules import CloudFormationLintRule
from cfnlint.rules.jsonschema.CfnLintJsonSchemaRegional import CfnLintJsonSchemaRegional
from cfnlint.template import Template

from trainium_local.resources.schemas import SchemaProblem, validator

_FALSELY_REFUSED = {"E3601": ("InputPath", "OutputPath")}
"""What rules refuse and AWS accepts, by the last step of the path. A Succeed state has both paths (Amazon States
Language, Succeed State)."""


def problems(resource_type: str, properties: Mapping[str, Any], region: str) -> list[SchemaProblem]:
    """Return the errors that cfn-lint's rules find in resolved properties."""
    found = [
        SchemaProblem(path="".join(f"/{step}" for step in [*path, *error.path]), message=error.message)
        for keyword, rule in _rules()[resource_type]
        for path, value in _parts(properties, keyword.split("/")[3:])
        for error in rule.validate(_validator(keyword, region), keyword, value, {})
        if not error.unknown and (not error.path or error.path[-1] not in _FALSELY_REFUSED.get(rule.id, ()))
    ]
    return list(dict.fromkeys(found))


@cache
def _validator(keyword: str, region: str) -> Any:
    base = validator({}, strict_types=False)
    section, resource_type, *rest = keyword.split("/")
    path = Path(path=deque([section, "Resource", *rest]), cfn_path=deque(keyword.split("/")))
    template = Template("", {section: {"Resource": {"Type": resource_type}}}, [region])
    return base.evolve(cfn=template, context=base.context.evolve(path=path))


@cache
def _rules() -> Mapping[str, list[tuple[str, Any]]]:
    """Return the keywords and rules of each resource type."""
    rules: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for module in pkgutil.walk_packages(cfnlint.rules.resources.__path__, f"{cfnlint.rules.resources.__name__}."):
        for kind in list(vars(importlib.import_module(module.name)).values()):
            if (
                isinstance(kind, type)
                and kind.__module__ == module.name
                and str(getattr(kind, "id", "")).startswith("E")
                and kind.initialize is CloudFormationLintRule.initialize  # others collect several resources
                and not issubclass(kind, CfnLintJsonSchemaRegional)
            ):
                rule = kind()
                for keyword in getattr(rule, "keywords", ()):
                    _, resource_type, section, *_ = f"{keyword}///".split("/")
                    if "::" in resource_type and section == "Properties":
                        rules[resource_type].append((keyword, rule))
    return rules


def load() -> None:
    """Load the rules, which takes half a second, before the first deployment needs them."""
    _ = _rules()


def _parts(value: Any, steps: Sequence[str]) -> Iterator[tuple[list[Any], Any]]:
    """Yield the paths and values that a keyword such as Policies/*/PolicyDocument selects."""
    if not steps:
        yield [], value
        return
    step, *rest = steps
    if isinstance(value, list) and step == "*":
        inner: Iterator[tuple[Any, Any]] = iter(enumerate(value))
    elif isinstance(value, Mapping):
        inner = iter([(key, value[key]) for key in value if step in ("*", key)])
    else:
        return
    for key, part in inner:
        yield from (([key, *path], found) for path, found in _parts(part, rest))
