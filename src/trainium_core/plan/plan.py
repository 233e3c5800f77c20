"""The plan: settings that are validated together."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainium_core.catalog.catalog import load_catalog
from trainium_core.catalog.file import CatalogError
from trainium_core.plan.rules import broken_rules
from trainium_core.plan.rules.forms import form_problems, malformed
from trainium_core.plan.settings_by_key import GROUPS, SETTINGS, constructor_arguments, in_order, setting_value
from trainium_core.plan.values import PlanValues
from trainium_core.prices.file import PricesError, load_prices
from trainium_core.problems import SETTING_PREFIX, PlanError, Problem, nearest
from trainium_core.setting_schema.forms import UnreadableError
from trainium_core.setting_schema.setting import section


@section
class Plan(PlanValues):
    """An immutable, validated description of a cluster, from which everything else is derived.

    Each field is a setting, or a section of settings such as `network`.

    Raises:
        PlanError: Settings are invalid. It lists the problems of single values and of the checked rules.
    """

    def __post_init__(self) -> None:
        values = {key: setting_value(self, key) for key in SETTINGS if key not in _LOADED}
        of_values = [p for key, value in values.items() if value is not None for p in form_problems(key, value)]
        problems = of_values + broken_rules(self, {problem.key for problem in of_values})
        if problems:
            raise PlanError(in_order(problems))

    @classmethod
    def of(cls, **values: Any) -> "Plan":
        """A plan from parsed settings by key: Plan.of(vpc_id=..., ...) is Plan(network=Network(vpc_id=...), ...).

        Raises:
            PlanError: As the constructor.
            KeyError: A key is unknown.
            TypeError: A required setting is missing.
        """
        return cls(**constructor_arguments(values))

    def but(self, **values: Any) -> "Plan":
        """A copy of this plan with other values of settings, by their keys. Raises the same errors as of()."""
        return Plan.of(**{key: setting_value(self, key) for key in SETTINGS} | values)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], folder: Path) -> "Plan":
        """A plan from unparsed settings.

        Args:
            settings: Values by key, without the prefix.
            folder: The folder to which paths in settings are relative.

        Raises:
            PlanError: A setting is unknown, missing or invalid. Otherwise as the constructor.
        """
        problems = [_unknown_setting(name, value) for name, value in settings.items() if name not in SETTINGS]
        values: dict[str, Any] = {}
        for name, setting in SETTINGS.items():
            if name not in settings:
                if setting.default_text is None:
                    problems.append(_missing(name))
                continue
            raw = str(folder / str(settings[name])) if name in _LOADED else settings[name]
            try:
                value = setting.form.read(raw)
                values[name] = _LOADED[name](value) if name in _LOADED else value
            except (CatalogError, PricesError) as error:
                problems.append(Problem(key=name, got=settings[name], allowed=setting.form.allowed, fix=str(error)))
            except UnreadableError as error:
                problems.append(malformed(name, settings[name], str(error)))
        if not problems:
            return cls.of(**values)
        required = {name: "" for name, setting in SETTINGS.items() if setting.default_text is None}
        readable = PlanValues(**constructor_arguments(required | values))
        raise PlanError(in_order(problems + broken_rules(readable, {problem.key for problem in problems})))


def _script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path} cannot be read as text: {error}") from error


_LOADED: Mapping[str, Callable[[Any], Any]] = {"setup_script": _script, "catalog": load_catalog, "prices": load_prices}
"""Parsers of the files whose paths these settings hold."""


def _unknown_setting(name: str, value: Any) -> Problem:
    close = nearest(name, tuple(SETTINGS))
    fix = f"write {SETTING_PREFIX}{close}" if close else "remove it; `trn settings` lists all settings"
    allowed = f"a setting of the groups {', '.join(GROUPS)}; `trn settings GROUP` shows them"
    return Problem(key=name, got=value, allowed=allowed, nearest=close, fix=fix)


def _missing(name: str) -> Problem:
    example = {"instance_type": "trn1.32xlarge", "region": "us-west-2"}[name]
    return Problem(
        key=name,
        got=None,
        allowed=SETTINGS[name].form.allowed,
        fix=f'add "{SETTING_PREFIX}{name}": "{example}" to the context of cdk.json, or pass it with -c',
    )
