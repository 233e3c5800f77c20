"""Relations between the properties of a resource, as JSON schemas; cfn-lint's own are checked with the schema."""

from functools import cache
from typing import Any

from cfnlint.jsonschema import StandardValidator

from trainium_local.rules.rule import TEXTS, Place, Properties, refusal


def check(resource_type: str, properties: Properties, _place: Place) -> None:
    """Raise Refused for the first relation that does not hold."""
    for text, validator in _relations().get(resource_type, ()):
        if not validator.is_valid(properties):
            raise refusal(text, resource_type.split("::")[1], message=text["message"].format_map(_Given(properties)))


class _Given(dict[str, Any]):
    """Properties, of which one that is not given reads as nothing."""

    def __missing__(self, key: str) -> str:
        return ""


@cache
def _relations() -> dict[str, list[tuple[dict[str, Any], Any]]]:
    found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
    for text in TEXTS["relation"]:
        found.setdefault(text["type"], []).append((text, StandardValidator(schema=text["schema"])))
    return found
