"""Definitions of state machines: cfn-lint's schema of the Amazon States Language, and where transitions lead."""

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

from cfnlint.helpers import load_resource
from cfnlint.jsonschema import StandardValidator
from cfnlint.schema.resolver import RefResolver

from trainium_local.rules.rule import Properties, Target, listed, refusal

_INVALID = {"code": "InvalidDefinition", "message": "Invalid State Machine Definition: '{}'"}
_MACHINES = ("Branches", "Iterator", "ItemProcessor")  # of a state
_DATA = ("Parameters", "Result", "Arguments", "Assign", "Output", "ResultSelector")


def check(resource_type: str, properties: Properties, _target: Target) -> None:
    """Raise Refused for a definition that Step Functions calls invalid."""
    given = properties.get("DefinitionString") or properties.get("Definition")
    if resource_type == "AWS::StepFunctions::StateMachine" and given:
        text = given if isinstance(given, str) else json.dumps(given)
        for name, value in (properties.get("DefinitionSubstitutions") or {}).items():
            text = text.replace(f"${{{name}}}", str(value))
        if problems := list(_problems(text)):
            raise refusal(_INVALID, "Sfn", ", ".join(problems))


def _problems(text: str) -> Iterator[str]:
    try:
        definition = json.loads(text)
    except json.JSONDecodeError as error:
        yield f"INVALID_JSON_DESCRIPTION: {error}"
        return
    if "JSONata" not in text:  # the schema is JSONPath's
        for error in _validator().iter_errors(definition):
            yield f"SCHEMA_VALIDATION_FAILED: {error.message} at {''.join(f'/{step}' for step in error.path)}"
    yield from _transitions(definition, "")


def _transitions(machine: Any, path: str) -> Iterator[str]:
    states: Any = machine.get("States") if isinstance(machine, dict) else None
    if not isinstance(states, dict) or "StartAt" not in machine:
        return
    targets = [("/StartAt", machine["StartAt"]), *_targets(states, "/States")]
    for at, target in targets:
        if target not in states:
            yield f"MISSING_TRANSITION_TARGET: Missing 'Next' target: {target} at {path}{at}"
    for name, state in states.items():
        if name not in [target for _, target in targets]:
            yield f'MISSING_TRANSITION_TARGET: State "{name}" is not reachable. at {path}/States/{name}'
        for key in _MACHINES if isinstance(state, dict) else ():
            for inner in listed(state.get(key)):
                yield from _transitions(inner, f"{path}/States/{name}/{key}")


def _targets(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every Next and Default with its path, but for those of a state machine within a state."""
    for key, item in enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ():
        if key in ("Next", "Default") and isinstance(item, str):
            yield f"{path}/{key}", item
        elif key not in (*_MACHINES, *_DATA):
            yield from _targets(item, f"{path}/{key}")


def _validator() -> Any:
    """A new one each time: threads cannot share a resolver."""
    schema = _schema()
    return StandardValidator(schema=schema, resolver=RefResolver.from_schema(schema, store={"definition": schema}))


@cache
def _schema() -> Any:
    schema = deepcopy(load_resource("cfnlint.data.schemas.other.step_functions", "statemachine.json"))
    # Amazon States Language, https://states-language.net/spec.html#succeed-state: it may select its input and output.
    schema["definitions"]["succeed"]["properties"] |= {"InputPath": {}, "OutputPath": {}}
    return schema
