"""Writes settings into the text of a cdk.json, and leaves the rest of the text unchanged."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainium_core.problems import SETTING_PREFIX

_CONTEXT = "context"
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True)
class _Member:
    """A member of a JSON object, with the positions of its key and its value in the text."""

    key: str
    key_start: int
    value_start: int
    value_end: int


def with_settings(text: str, settings: Mapping[str, str]) -> str:
    """The text with settings added to its context, or replaced in place.

    Args:
        text: A JSON object. Its context, if there is one, must be an object too.
        settings: Values by setting, without the prefix `trn:`.
    """
    root = _skip_space(text, 0)
    if all(member.key != _CONTEXT for member in _members(text, root)):
        text = _set(text, root, _CONTEXT, "{}")
    for name, value in settings.items():
        context = next(member.value_start for member in _members(text, root) if member.key == _CONTEXT)
        text = _set(text, context, f"{SETTING_PREFIX}{name}", json.dumps(value, ensure_ascii=False))
    return text


def _set(text: str, start: int, key: str, value: str) -> str:
    """Set a member of the object at `start`. `value` is JSON."""
    members = list(_members(text, start))
    for member in reversed(members):  # of equal keys, the last one counts
        if member.key == key:
            return text[: member.value_start] + value + text[member.value_end :]
    new = f"{json.dumps(key)}: {value}"
    if not members:
        return f"{text[: start + 1]}{_lines_of_single_member(text, start, new)}{text[text.index('}', start) :]}"
    ours = [member for member in members if member.key.startswith(SETTING_PREFIX)]
    before = (ours or members)[-1]
    space = text[start + 1 : members[0].key_start]
    return f"{text[: before.value_end]},{space}{new}{text[before.value_end :]}"


def _lines_of_single_member(text: str, start: int, new: str) -> str:
    if "\n" not in text:
        return new
    line = text[text.rfind("\n", 0, start) + 1 :]
    margin = line[: len(line) - len(line.lstrip(" \t"))]
    indent = re.search(r"\n([ \t]+)", text)
    return f"\n{margin}{indent[1] if indent else '  '}{new}\n{margin}"


def _members(text: str, start: int) -> Iterator[_Member]:
    at = _skip_space(text, start + 1)
    while text[at] != "}":
        key, key_end = _DECODER.raw_decode(text, at)
        value_start = _skip_space(text, _skip_space(text, key_end) + 1)
        _, value_end = _DECODER.raw_decode(text, value_start)
        yield _Member(key=key, key_start=at, value_start=value_start, value_end=value_end)
        at = _skip_space(text, value_end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
