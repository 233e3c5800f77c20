"""Where settings come from: the context of cdk.json and of `-c`, as the CDK CLI or `trn` hands it over."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from trainium_core.plan import Plan
from trainium_core.problems import SETTING_PREFIX, PlanError, Problem, nearest
from trainium_core.settings import SETTINGS


def plan_from_cdk(folder: Path) -> Plan:
    """The plan for an app that the CDK CLI runs, or that is run by hand in the folder of cdk.json.

    Reads what the CLI passes in the environment, so that a mistake is told before aws_cdk is even imported.
    Raises PlanError.
    """
    passed = os.environ.get("CDK_CONTEXT_JSON")
    context: dict[str, Any] = json.loads(passed) if passed is not None else _context_of(folder / "cdk.json")
    overflow = os.environ.get("CONTEXT_OVERFLOW_LOCATION")
    if overflow:
        context |= json.loads(Path(overflow).read_text())
    return plan_from_context(context, folder)


def plan_from_file(cdk_json: Path, overrides: Iterable[str]) -> Plan:
    """The plan that cdk.json describes with `key=value` overrides as `-c` takes them.

    Raises PlanError, also for a missing or broken file and for an override without `=`.
    """
    context = _context_of(cdk_json)
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator:
            raise PlanError([_unclear_override(override)])
        context[key] = value
    return plan_from_context(context, cdk_json.parent)


def plan_from_context(context: Mapping[str, Any], folder: Path) -> Plan:
    """The plan that a CDK context describes. Keys of other libraries are left alone; one that means ours is refused.

    Raises PlanError.
    """
    mistaken = [key for key in context if _is_ours_misspelt(key)]
    settings = {k.removeprefix(SETTING_PREFIX): v for k, v in context.items() if k.startswith(SETTING_PREFIX)}
    problems = [_mistaken_key(key, context[key]) for key in mistaken]
    try:
        plan = Plan.from_settings(settings, folder)
    except PlanError as error:
        raise PlanError(problems + list(error.problems)) from None
    if problems:
        raise PlanError(problems)
    return plan


def _context_of(cdk_json: Path) -> dict[str, Any]:
    try:
        document: Any = json.loads(cdk_json.read_text())
        return dict(cast(Mapping[str, Any], document.get("context", {})))
    except OSError as error:
        fix = "run in the folder of cdk.json, or give every setting with -c"
        raise PlanError([_bad_file(cdk_json, f"cannot be read: {error.strerror}", fix)]) from error
    except (json.JSONDecodeError, AttributeError) as error:
        fix = 'make it a JSON object with the settings under "context"'
        raise PlanError([_bad_file(cdk_json, f"is not usable: {error}", fix)]) from error


def _bad_file(cdk_json: Path, what: str, fix: str) -> Problem:
    return Problem(key="*", got=f"{cdk_json} {what}", allowed="a cdk.json with a context", fix=fix)


def _unclear_override(override: str) -> Problem:
    key = override.removeprefix(SETTING_PREFIX)
    return Problem(
        key=key,
        got=override,
        allowed=f"-c {SETTING_PREFIX}name=value",
        nearest=nearest(key, tuple(SETTINGS)),
        fix="put an = between the name and the value, without spaces",
    )


def _is_ours_misspelt(key: str) -> bool:
    folded = key.strip().casefold()
    looks_prefixed = re.match(r"trn\s*[:_./-]", folded) is not None and not key.startswith(SETTING_PREFIX)
    return looks_prefixed or folded in SETTINGS


def _mistaken_key(key: str, value: Any) -> Problem:
    bare = re.sub(r"^trn\s*[:_./-]\s*", "", key.strip().casefold())
    close = nearest(bare, tuple(SETTINGS))
    meant = f"{SETTING_PREFIX}{close}" if close else f"a setting with the prefix {SETTING_PREFIX}"
    return Problem(
        key=close or bare,
        got=f"{key}={value}",
        allowed=f"settings with the prefix {SETTING_PREFIX}, spelt exactly",
        nearest=meant if close else None,
        fix=f"write {meant}",
    )
