"""Relations between the properties of a resource, as JSON schemas; cfn-lint's own are checked with the schema."""

from collections import defaultdict
from functools import cache
from typing import Any

from cfnlint.jsonschema import StandardValidator

from trainium_local.rules.rule import FACTS, Place, Properties, refusal


def check(resource_type: str, properties: Properties, _place: Place) -> None:
    """Raise Refused for the first relation that does not hold."""
    for fact, validator in _relations().get(resource_type, ()):
        if not validator.is_valid(properties):
            raise refusal(
                fact, resource_type.split("::")[1], message=fact["message"].format_map(defaultdict(str, properties))
            )


@cache
def _relations() -> dict[str, list[tuple[dict[str, Any], Any]]]:
    found: dict[str, list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    for fact in FACTS["relation"]:
        found[fact["type"]].append((fact, StandardValidator(schema=fact["schema"])))
    return found
