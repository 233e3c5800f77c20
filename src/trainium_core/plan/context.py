"""Reads settings from the context of cdk.json and of `-c`, as the CDK CLI or `trn` provides it, and writes cdk.json."""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from trainium_core.naming import DEFAULT_QUALIFIER
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.problems import OVERRIDE, SETTING_PREFIX, WHOLE_FILE, PlanError, Problem, nearest

_PROJECT_FILE = "cdk.json"
_QUALIFIER = "@aws-cdk/core:bootstrapQualifier"
_QUALIFIER_FIX = "set it to the qualifier of `cdk bootstrap --qualifier`"


def plan_from_cdk(folder: Path) -> Plan:
    """The plan of an app.

    The context is that of the CDK CLI, in its environment variables. Without the CDK CLI, it is read from cdk.json,
    cdk.context.json and ~/.cdk.json.

    Args:
        folder: The folder of cdk.json.

    Raises:
        PlanError: A setting or cdk.json is invalid.
    """
    passed = os.environ.get("CDK_CONTEXT_JSON")
    context: dict[str, Any] = json.loads(passed) if passed is not None else _file_context(folder / _PROJECT_FILE)
    overflow = os.environ.get("CONTEXT_OVERFLOW_LOCATION")
    if overflow:
        context |= json.loads(Path(overflow).read_text())
    return plan_from_context(context, folder)


def plan_from_file(cdk_json: Path | None, overrides: Sequence[str], *, ignoring: Collection[str] = ()) -> Plan:
    """The plan of cdk.json, with `key=value` overrides as `-c` takes them.

    Args:
        cdk_json: Default: cdk.json in the working directory, which may be missing if there are overrides.
        overrides: Settings that replace those of cdk.json.
        ignoring: Keys of settings whose values are ignored.

    Raises:
        PlanError: A setting is invalid, the file is missing or invalid, or an override has no `=` or no name.
    """
    file = cdk_json or Path(_PROJECT_FILE)
    may_be_missing = cdk_json is None and overrides
    context = _overridden({} if may_be_missing and not file.exists() else _file_context(file), overrides)
    for name in ignoring:
        context.pop(SETTING_PREFIX + name, None)
    return plan_from_context(context, file.parent)


def settings_given(cdk_json: Path | None, overrides: Sequence[str]) -> Mapping[str, Any]:
    """The unparsed settings in cdk.json and the overrides, by name. A misspelt setting has its whole key as the name.

    Args:
        cdk_json: Default: cdk.json in the working directory, if it exists.
        overrides: Settings that replace those of cdk.json.

    Raises:
        PlanError: The file is missing or invalid, or an override has no `=` or no name.
    """
    file = cdk_json or Path(_PROJECT_FILE)
    context = _overridden(_file_context(file) if cdk_json or file.exists() else {}, overrides)
    keys = (key for key in context if key.startswith(SETTING_PREFIX) or _is_misspelt_setting(key))
    return {key.removeprefix(SETTING_PREFIX): context[key] for key in keys}


def bootstrap_qualifier(cdk_json: Path | None, overrides: Sequence[str]) -> str:
    """The qualifier of `cdk bootstrap` that the CDK CLI uses.

    Args:
        cdk_json: Default: cdk.json in the working directory, if it exists.
        overrides: `key=value` overrides as `-c` takes them.

    Raises:
        PlanError: The file is missing or invalid, an override has no `=` or no name, or `cdk bootstrap` refuses the
            qualifier. In IAM policies, one with a wildcard would select the roles of others.
    """
    file = cdk_json or Path(_PROJECT_FILE)
    context = _overridden(_file_context(file) if cdk_json or file.exists() else {}, overrides)
    qualifier = context.get(_QUALIFIER) or DEFAULT_QUALIFIER
    if not isinstance(qualifier, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,10}", qualifier):
        got, allowed = f"{_QUALIFIER}={qualifier}", "1 to 10 letters, digits, - and _"
        raise PlanError([Problem(key=WHOLE_FILE, got=got, allowed=allowed, fix=_QUALIFIER_FIX)])
    return qualifier


def _overridden(context: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator or not key.strip().removeprefix(SETTING_PREFIX).strip():
            raise PlanError([_unclear_override(override)])
        context[key] = value
    return context


def plan_from_context(context: Mapping[str, Any], folder: Path) -> Plan:
    """The plan of a CDK context. Keys of other libraries are ignored.

    Args:
        context: The CDK context.
        folder: The folder to which paths in settings are relative.

    Raises:
        PlanError: A setting is invalid or misspelt.
    """
    settings = {k.removeprefix(SETTING_PREFIX): v for k, v in context.items() if k.startswith(SETTING_PREFIX)}
    problems = [_misspelt_key(key, context[key]) for key in context if _is_misspelt_setting(key)]
    try:
        plan = Plan.from_settings(settings, folder)
    except PlanError as error:
        raise PlanError(problems + list(error.problems)) from None
    if problems:
        raise PlanError(problems)
    return plan


def with_settings(text: str, settings: Mapping[str, str]) -> str:
    """Add settings to the context of a cdk.json, or replace them. Keeps the order and the indentation.

    Args:
        text: The text of cdk.json: a JSON object, in which `context` is missing or an object.
        settings: Values by setting, without the prefix `trn:`.

    Returns:
        The new text.
    """
    document: dict[str, Any] = json.loads(text)
    document.setdefault("context", {}).update({SETTING_PREFIX + name: value for name, value in settings.items()})
    indent = re.search(r"\n([ \t]+)", text)
    return json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _file_context(cdk_json: Path) -> dict[str, Any]:
    """The merged context. As in the CDK CLI, cdk.json overrides cached lookups, and both override ~/.cdk.json."""
    context = _object_in(cdk_json, "context")
    if cdk_json.name == _PROJECT_FILE:
        looked_up = cdk_json.with_name("cdk.context.json")
        defaults = Path(os.path.expanduser("~/.cdk.json"))  # noqa: PTH111 - Path's own fails where there is no home
        context = (_object_in(looked_up) if looked_up.is_file() else {}) | context
        context = (_object_in(defaults, "context") if defaults.is_file() else {}) | context
    return context


def _object_in(file: Path, key: str | None = None) -> dict[str, Any]:
    """The object in a JSON file, or below one of its keys; empty if the key is missing. Raises PlanError."""
    try:
        document = _object(json.loads(file.read_text(encoding="utf-8")), "the content")
        if key is None:
            return document
        outside = [name for name in document if name.strip().casefold().startswith(SETTING_PREFIX)]
        if outside:
            raise PlanError([_outside_context(name, document[name], file) for name in outside])
        return _object(document.get(key, {}), f'"{key}"')
    except PlanError:
        raise
    except json.JSONDecodeError as error:
        raise PlanError([_bad_file(file, _where(error))]) from error
    except OSError as error:
        fix = "run in the folder of cdk.json, or specify every setting with -c"
        raise PlanError([_bad_file(file, f"the file cannot be read ({error.strerror}): {fix}")]) from error
    except ValueError as error:
        raise PlanError([_bad_file(file, f"fix the file: {error}")]) from error


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {json.dumps(value)}, not an object")
    return cast(dict[str, Any], value)


def _outside_context(name: str, value: Any, file: Path) -> Problem:
    return Problem(
        key=name.strip().casefold().removeprefix(SETTING_PREFIX),
        got=value,
        allowed=f'in {file.name} only inside "context": elsewhere it is ignored',
        fix=f'move "{name}" into the object "context"',
    )


def _where(error: json.JSONDecodeError) -> str:
    """The position and the cause of a JSON error, with the text of its line."""
    lines = error.doc.splitlines() or [""]
    at = lines[min(error.lineno, len(lines)) - 1].strip()
    return f"line {error.lineno}, column {error.colno}: {error.msg}{f', in: {at}' if at else ''}"


def _bad_file(cdk_json: Path, fix: str) -> Problem:
    allowed = 'a file that holds a JSON object with the settings under "context"'
    return Problem(key=WHOLE_FILE, got=str(cdk_json), allowed=allowed, fix=fix)


def _unclear_override(override: str) -> Problem:
    before, separator, value = override.partition("=")
    close = nearest(before.strip().removeprefix(SETTING_PREFIX), tuple(SETTINGS))
    example = SETTING_PREFIX + (close or "NAME")
    return Problem(
        key=OVERRIDE,
        got=override,
        allowed=f"{OVERRIDE} {SETTING_PREFIX}name=value",
        nearest=close,
        fix=(
            f"write a setting's name before the =, as in {OVERRIDE} {example}={value}; `trn settings` shows the names"
            if separator
            else f"put an = between the name and the value, without spaces, as in {OVERRIDE} {example}=VALUE"
        ),
    )


def _is_misspelt_setting(key: str) -> bool:
    """Whether a key resembles a setting: without the prefix, in another case, or with a similar prefix."""
    if key.startswith(SETTING_PREFIX):
        return False
    prefix, name = _split_key(key)
    expected = SETTING_PREFIX.rstrip(":")
    return prefix == expected or (name in SETTINGS and (not prefix or nearest(prefix, (expected,)) is not None))


def _split_key(key: str) -> tuple[str, str]:
    folded = key.strip().casefold()
    match = re.fullmatch(r"([a-z]{2,5})\s*[:./_-]\s*(.*)", folded)
    return (match[1], match[2]) if match and folded not in SETTINGS else ("", folded)


def _misspelt_key(key: str, value: Any) -> Problem:
    _, name = _split_key(key)
    close = nearest(name, tuple(SETTINGS))
    meant = f"{SETTING_PREFIX}{close}" if close else f"a setting with the prefix {SETTING_PREFIX}"
    return Problem(
        key=close or name,
        got=f"{key}={value}",
        allowed=f"settings with the prefix {SETTING_PREFIX}, spelt exactly",
        nearest=meant if close else None,
        fix=f"write {meant}",
    )
