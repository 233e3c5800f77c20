"""Problems of values that do not have the form of a setting. The caller names the field."""

import re
from collections.abc import Iterator
from typing import Any, cast

from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.problems import Problem, nearest
from trainium_core.setting_schema.forms import SettingForm, UnreadableError, WholeNumber

_ZONE_NAME = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9][a-z]")
"""Such as us-west-2a, often given in place of a zone ID."""


def form_problems(setting: str, value: Any, *, field: str | None = None) -> Iterator[Problem]:
    """The problems of a value from Python code.

    Args:
        setting: Key of the setting.
        value: The value.
        field: Name of the field in the problem. Default: the setting.
    """
    form = cast(SettingForm, SETTINGS[setting].form)
    try:
        form.check(value)
    except UnreadableError as error:
        yield malformed(setting, value, str(error), field=field)


def malformed(setting: str, got: Any, fix: str, *, field: str | None = None) -> Problem:
    """The problem of a value that does not have the form of a setting."""
    form = SETTINGS[setting].form
    if setting == "availability_zone_id" and _ZONE_NAME.fullmatch(str(got)):
        fix = "specify the ID of the zone, see `trn types`: a zone name can mean different zones in different accounts"
    return Problem(
        key=field or setting, got=got, allowed=form.allowed, nearest=nearest(str(got), form.choices), fix=fix
    )


def range_problems(setting: str, value: int, unit: str, *, field: str) -> Iterator[Problem]:
    """The problem of a number outside the range of a setting.

    Args:
        setting: Key of the setting.
        value: The number.
        unit: Unit of the number, such as minutes.
        field: Name of the field in the problem.
    """
    form = SETTINGS[setting].form
    assert isinstance(form, WholeNumber)
    if value < form.smallest or (form.largest is not None and value > form.largest):
        most = f" to {form.largest} {unit}" if form.largest is not None else f" {unit} or more"
        fix = "choose a value in this range"
        yield Problem(key=field, got=f"{value} {unit}", allowed=f"{form.smallest}{most}", fix=fix)
