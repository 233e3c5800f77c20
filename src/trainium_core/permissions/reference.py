"""What IAM actions can be on, by data/service_authorization.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from trainium_core.facts import DATA

_ANY_TYPE = "*"


@dataclass(frozen=True, kw_only=True)
class Action:
    """An IAM action, such as ec2:AttachNetworkInterface.

    access: Read, List, Write, Tagging or Permissions management. required: types of resources that each request is on,
    all of them; optional: those that a request may be on. `any_type`: on more types than are listed here.
    """

    access: str
    required: Sequence[str]
    optional: Sequence[str]
    any_type: bool


@cache
def _reference() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "service_authorization.toml").read_text())


def known_actions() -> Sequence[str]:
    return [f"{prefix}:{name}" for prefix, actions in _reference()["actions"].items() for name in actions]


def action(name: str) -> Action:
    """Raises KeyError for an action that the file does not have."""
    prefix, _, short = name.partition(":")
    row = _reference()["actions"][prefix][short]
    optional = row.get("optional", [])
    return Action(
        access=row["access"],
        required=row.get("required", []),
        optional=[kind for kind in optional if kind != _ANY_TYPE],
        any_type=_ANY_TYPE in optional,
    )


def arn_format(name: str, kind: str) -> str:
    """The ARN of a type of resource of the action's service, with placeholders such as ${Account}."""
    return _reference()["resources"][name.partition(":")[0]][kind]
