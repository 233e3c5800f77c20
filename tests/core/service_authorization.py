"""The actions and ARN formats of the package's copy of the Service Authorization Reference."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from trainium_core.facts import DATA


@cache
def _reference() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "service_authorization.toml").read_text())


def known_actions() -> Sequence[str]:
    return [f"{prefix}:{name}" for prefix, actions in _reference()["actions"].items() for name in actions]


def arn_format(name: str, kind: str) -> str:
    """The ARN format of a resource type of an action's service, with placeholders such as ${Account}."""
    return _reference()["resources"][name.partition(":")[0]][kind]


def dependent_actions(name: str) -> set[str]:
    """The actions that a request also requires, as far as the reference lists them."""
    prefix, _, short = name.partition(":")
    return {*_reference()["actions"].get(prefix, {}).get(short, {}).get("dependent", [])}
