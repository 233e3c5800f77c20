"""The structure of a template, section by section and function by function, against template_schema.json."""

import json
from importlib.resources import files
from typing import Any

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.values import functions, walk
from trainium_local.resources import schemas

_SCHEMA = json.loads((files("trainium_local.cloudformation") / "template_schema.json").read_text())
_REQUEST = schemas.validator(_SCHEMA["request"], strict_types=True)
_TEMPLATE = schemas.validator(_SCHEMA["template"], strict_types=True)
_FUNCTIONS = {
    name: (schemas.validator(schema, strict_types=True), words)
    for name, (schema, words) in _SCHEMA["functions"].items()
}
_WITH_TRANSFORM = {"Fn::Length", "Fn::ToJsonString"}
_IN_RULES = {
    *("Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn", "Fn::RefAll", "Fn::ValueOf", "Fn::ValueOfAll")
}
_FUNCTION_SECTIONS = ("Conditions", "Resources", "Outputs", "Rules")


def check(document: Any) -> None:
    """Raises ValidationError, in CloudFormation's words, for the first thing that is not as it should be."""
    try:
        for path, value in walk(document):
            if value is None and path and not path.endswith("/Fn::GetAZs"):  # AWS's own collection has those
                raise ValidationError(f"[{path}] 'null' values are not allowed in templates")
        _refuse(_TEMPLATE, document)
        for section in _FUNCTION_SECTIONS:
            for name, argument in functions(document.get(section, {})):
                _check_function(name, argument, document, section)
    except RecursionError as error:
        raise ValidationError("Template format error: unsupported structure.") from error


def check_request(**members: Any) -> None:
    """Raises ValidationError for what the API does not take, whatever the template: sizes, names, tags."""
    _refuse(_REQUEST, members)


def _check_function(name: str, argument: Any, document: dict[str, Any], section: str) -> None:
    supported = _FUNCTIONS.keys() - ({} if document.get("Transform") else _WITH_TRANSFORM)
    supported -= set() if section == "Rules" else _IN_RULES
    if name not in supported:
        raise ValidationError(
            f"Template error: Encountered unsupported function: {name} Supported functions are: "
            f"[{', '.join(sorted(supported))}]"
        )
    shape, words = _FUNCTIONS[name]
    if any(not error.unknown for error in shape.iter_errors(argument)):
        raise ValidationError(words)


def _refuse(validator: Any, value: Any) -> None:
    for error in validator.iter_errors(value):
        if not error.unknown:  # as a text with a dynamic reference is
            raise ValidationError(_words(error))


def _words(error: Any) -> str:
    steps = [str(step) for step in error.path]
    value, limit = error.instance, error.validator_value
    message = error.schema.get("message", {}).get(error.validator, "Template format error: unsupported structure.")
    words = message.format(
        path="".join(f"/{step}" for step in steps),
        name=steps[-1] if steps else "",
        parent=steps[-2] if len(steps) > 1 else "",
        value=value,
        limit=limit,
        size=len(value) if isinstance(value, str | list | dict) else value,
    )
    known = error.schema.get("properties", {}) if error.validator == "additionalProperties" else ()
    return words + schemas.did_you_mean(steps[-1], known) if known else words
