"""Every setting of a plan by its key in cdk.json: rules, command line and documentation all follow this table."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from trainium_core.plan.setting import METADATA_KEY, Setting
from trainium_core.plan.values import PlanValues


def _fields() -> Iterator[tuple[Setting, tuple[str, ...]]]:
    """Each setting with the names that lead to its value: of its section if it is in one, and of its field."""
    for known in fields(PlanValues):
        if METADATA_KEY in known.metadata:
            yield known.metadata[METADATA_KEY], (known.name,)
        else:
            for inner in fields(_SECTIONS[known.name]):
                yield inner.metadata[METADATA_KEY], (known.name, inner.name)


_SECTIONS: Mapping[str, Any] = {f.name: f.default_factory for f in fields(PlanValues) if METADATA_KEY not in f.metadata}
_PATHS: Mapping[str, tuple[str, ...]] = {setting.key: path for setting, path in _fields()}

SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting, _ in _fields()}


def setting_value(values: PlanValues, key: str) -> Any:
    """The value of the setting that cdk.json calls `key`."""
    found: Any = values
    for name in _PATHS[key]:
        found = getattr(found, name)
    return found


def constructor_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Plan for values by the keys of their settings. Raises KeyError for an unknown key."""
    arguments: dict[str, Any] = {}
    of_sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        *sections, name = _PATHS[key]
        (of_sections.setdefault(sections[0], {}) if sections else arguments)[name] = value
    return arguments | {name: _SECTIONS[name](**inner) for name, inner in of_sections.items()}
