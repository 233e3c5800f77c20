"""The JSON Schema of the records of `trn bench` and `trn tco`, and the table of their keys, from the dataclasses."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from tools.reference.markdown import code, table, text
from trainium_core.evidence.gates import MET, NOT_MEASURED, NOT_MET, STATES, Fidelity, Gate
from trainium_core.evidence.metric import ORIGINS, Metric
from trainium_core.evidence.record import KINDS, SCHEMA, SIDES, Record
from trainium_core.evidence.typed_json import is_required
from trainium_core.facts import DATA

SCHEMA_FILE = DATA / "evidence" / "record.schema.json"

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ALLOWED: Mapping[tuple[type, str], Sequence[str]] = {
    (Record, "kind"): KINDS,
    (Record, "side"): SIDES,
    (Metric, "origin"): ORIGINS,
    (Gate, "state"): STATES,
    (Fidelity, "state"): (MET, NOT_MET, NOT_MEASURED),
}
_ATTRIBUTE = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def record_schema() -> str:
    """The schema as JSON."""
    parts = {kind.__name__: _object(kind) for kind in _dataclasses(Record)}
    top = parts.pop(Record.__name__)
    top["properties"] = {"schema": {"const": SCHEMA}, **top["properties"]}
    top["required"] = ["schema", *top["required"]]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A results file of the schema {SCHEMA}",
    }
    return json.dumps({**head, **top, "$defs": parts}, indent=1) + "\n"


def record_keys() -> str:
    """A table for each object of a record: its keys, their types and what they mean."""
    tables = (
        f"### {_title(kind)}\n\n{text(_first_line(kind))}\n\n{table(('key', 'type', 'meaning'), _key_rows(kind))}"
        for kind in _dataclasses(Record)
    )
    return "\n\n".join(tables)


def _key_rows(kind: type) -> Iterator[tuple[str, str, str]]:
    meanings, hints = _meanings(kind), get_type_hints(kind)
    if kind is Record:
        yield code("schema"), f"text, {code(SCHEMA)}", "The name of this format."
    for field in fields(cast("Any", kind)):
        allowed = _ALLOWED.get((kind, field.name))
        shown = ", ".join(map(code, allowed)) if allowed else _type_text(hints[field.name])
        required = "; required" if _is_needed(kind, field.name) else ""
        yield code(field.name), shown + required, text(meanings.get(field.name, ""))


def _type_text(hint: Any) -> str:
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return " or ".join("null" if kind is NoneType else _type_text(kind) for kind in arguments)
    if origin is tuple:
        return f"list of {_type_text(arguments[0])}"
    if origin is not None:  # Mapping.
        return f"object: {_type_text(arguments[1])} by name"
    return names.get(hint) or f"[{_title(hint)}](#{_title(hint).lower().replace(' ', '-')})"


def _title(kind: type) -> str:
    name = "ResultsFile" if kind is Record else kind.__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def _first_line(kind: type) -> str:
    return _in_json((inspect.getdoc(kind) or "").partition("\n\n")[0])


def _meanings(kind: type) -> Mapping[str, str]:
    found = _ATTRIBUTE.findall(inspect.getdoc(kind) or "")
    return {name: _in_json(" ".join(meaning.split())) for names, meaning in found for name in names.split(", ")}


def _in_json(description: str) -> str:
    return re.sub(r"\bNone\b", "null", description)


def _dataclasses(kind: type) -> Sequence[type]:
    """The dataclass and all dataclasses of its fields, each once."""
    found = [kind]
    for known in found:
        for hint in get_type_hints(known).values():
            inner = [cast("type", part) for part in _inner_types(hint) if is_dataclass(part)]
            found += [part for part in dict.fromkeys(inner) if part not in found]
    return found


def _inner_types(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in get_args(hint):
        yield from _inner_types(argument)


def _is_needed(kind: type, name: str) -> bool:
    """Whether a record must have a key. A key that may be null is null if it is missing."""
    (field,) = (field for field in fields(cast("Any", kind)) if field.name == name)
    return is_required(field) and NoneType not in get_args(get_type_hints(kind)[name])


def _object(kind: type) -> dict[str, Any]:
    meanings, properties = _meanings(kind), dict[str, Any]()
    for name, hint in get_type_hints(kind).items():
        properties[name] = _typed(hint)
        if (kind, name) in _ALLOWED:
            null = [None] if NoneType in get_args(hint) else []
            properties[name] = {"enum": [*_ALLOWED[kind, name], *null]}
        if name in meanings:
            properties[name]["description"] = meanings[name]
    return {
        "type": "object",
        "description": _first_line(kind),
        "properties": properties,
        "required": [name for name in properties if _is_needed(kind, name)],
        "additionalProperties": False,
    }


def _typed(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return {"anyOf": [{"type": "null"} if kind is NoneType else _typed(kind) for kind in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _typed(arguments[0])}
    if origin is not None:  # Mapping.
        return {"type": "object", "additionalProperties": _typed(arguments[1])}
    return {"type": _TYPES[hint]} if hint in _TYPES else {"$ref": f"#/$defs/{hint.__name__}"}
