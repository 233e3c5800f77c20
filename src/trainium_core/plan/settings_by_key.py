"""All settings of a plan by their keys in cdk.json without the prefix, for rules, command line and reference."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem
from trainium_core.setting_schema.setting import METADATA_KEY, Setting

_Owner = str | None
"""The owner of a setting: the field of a section of the plan, or None for the plan itself."""


def _fields() -> Iterator[tuple[Setting, _Owner, str]]:
    """Each setting with its owner and its field name."""
    for outer in fields(PlanValues):
        if METADATA_KEY in outer.metadata:
            yield outer.metadata[METADATA_KEY], None, outer.name
        else:
            for inner in fields(_SECTIONS[outer.name]):
                yield inner.metadata[METADATA_KEY], outer.name, inner.name


_SECTIONS: Mapping[str, Any] = {f.name: f.default_factory for f in fields(PlanValues) if METADATA_KEY not in f.metadata}
_OWNERS: Mapping[str, tuple[_Owner, str]] = {setting.key: (owner, name) for setting, owner, name in _fields()}

SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting, _, _ in _fields()}


CLUSTER_GROUP = "cluster"
"""The group of settings without a section."""

GROUP_OF: Mapping[str, str] = {
    key: owner.replace("_", "-") if owner else CLUSTER_GROUP for key, (owner, _) in _OWNERS.items()
}
"""The group of each setting: its section, or CLUSTER_GROUP."""

GROUPS: tuple[str, ...] = tuple(dict.fromkeys(GROUP_OF.values()))


def belongs_to_another_engine(key: str, engine: str) -> bool:
    """Whether a setting is in the group of another engine, by its key in trn:stacks."""
    return GROUP_OF[key] in CONSTRUCT_IDS and GROUP_OF[key] not in (CLUSTER_GROUP, engine)


_POSITIONS: Mapping[str, int] = {key: position for position, key in enumerate(SETTINGS)}


def setting_value(values: PlanValues, key: str) -> Any:
    """The value of a setting, by its key."""
    owner, name = _OWNERS[key]
    return getattr(values if owner is None else getattr(values, owner), name)


def constructor_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Plan for values by the keys of their settings. Raises KeyError for an unknown key."""
    arguments: dict[str, Any] = {}
    of_sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        owner, name = _OWNERS[key]
        (arguments if owner is None else of_sections.setdefault(owner, {}))[name] = value
    return arguments | {owner: _SECTIONS[owner](**inner) for owner, inner in of_sections.items()}


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort problems by the order of the settings. Problems without a setting are first."""
    return sorted(problems, key=lambda problem: _POSITIONS.get(problem.key, -1))
