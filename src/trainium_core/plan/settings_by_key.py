"""Every setting of a plan by its key in cdk.json: rules, command line and documentation all follow this table."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from trainium_core.engines.registry import ENGINES
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem
from trainium_core.setting_schema.setting import METADATA_KEY, Setting

_Owner = str | type[Any] | None
"""What has a setting: a section of the plan by its field, the section of an engine, or None for the plan itself."""

_ENGINE_SECTIONS = "engine_sections"


def _fields() -> Iterator[tuple[Setting, _Owner, str]]:
    """Each setting with its owner, and the name of its field there."""
    for known in fields(PlanValues):
        if METADATA_KEY in known.metadata:
            yield known.metadata[METADATA_KEY], None, known.name
        elif known.name == _ENGINE_SECTIONS:
            for engine in ENGINES.values():
                if engine.settings is not None:
                    yield from ((s, engine.settings, name) for s, name in _settings_of(engine.settings))
        else:
            yield from ((s, known.name, name) for s, name in _settings_of(_SECTIONS[known.name]))


def _settings_of(section: Any) -> Iterator[tuple[Setting, str]]:
    for known in fields(section):
        yield known.metadata[METADATA_KEY], known.name


_SECTIONS: Mapping[str, Any] = {f.name: f.default_factory for f in fields(PlanValues) if METADATA_KEY not in f.metadata}
_OWNERS: Mapping[str, tuple[_Owner, str]] = {setting.key: (owner, name) for setting, owner, name in _fields()}

SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting, _, _ in _fields()}


def _group(owner: _Owner) -> str:
    match owner:
        case None:
            return CLUSTER_GROUP
        case str():
            return owner.replace("_", "-")
        case _:
            return next(engine.key for engine in ENGINES.values() if engine.settings is owner)


CLUSTER_GROUP = "cluster"
"""Name of the group of the settings that are in no section."""

GROUP_OF: Mapping[str, str] = {key: _group(owner) for key, (owner, _) in _OWNERS.items()}
"""The group of each setting: that of its section of the plan, or of its engine."""

GROUPS: tuple[str, ...] = tuple(dict.fromkeys(GROUP_OF.values()))

_POSITIONS: Mapping[str, int] = {key: position for position, key in enumerate(SETTINGS)}


def setting_value(values: PlanValues, key: str) -> Any:
    """The value of the setting that cdk.json calls `key`."""
    owner, name = _OWNERS[key]
    match owner:
        case None:
            return getattr(values, name)
        case str():
            return getattr(getattr(values, owner), name)
        case _:
            return getattr(values.section(owner), name)


def constructor_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Plan for values by the keys of their settings. Raises KeyError for an unknown key."""
    arguments: dict[str, Any] = {}
    of_sections: dict[_Owner, dict[str, Any]] = {}
    for key, value in values.items():
        owner, name = _OWNERS[key]
        (arguments if owner is None else of_sections.setdefault(owner, {}))[name] = value
    arguments |= {owner: _SECTIONS[owner](**inner) for owner, inner in of_sections.items() if isinstance(owner, str)}
    arguments[_ENGINE_SECTIONS] = tuple(
        engine.settings(**of_sections.get(engine.settings, {}))
        for engine in ENGINES.values()
        if engine.settings is not None
    )
    return arguments


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems in the order of the settings, those of none first; of one setting, in the order in which they come."""
    return sorted(problems, key=lambda problem: _POSITIONS.get(problem.key, -1))
