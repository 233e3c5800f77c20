"""Whether one value has the form of a setting, whoever gives it and whatever they call it."""

import re
from collections.abc import Iterator
from typing import Any

from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.problems import Problem, nearest
from trainium_core.setting_schema.forms import UnreadableError, WholeNumber, as_written

_ZONE_NAME = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9][a-z]")
"""Such as us-west-2a, the common mistake for a zone id."""


def form_problems(setting: str, value: Any, *, field: str | None = None) -> Iterator[Problem]:
    """What is wrong with a value that Python code gives: it must be just what the setting's form would read it as.

    field: what the caller calls it. Default: the setting.
    """
    try:
        read = SETTINGS[setting].form.read(as_written(value))
    except UnreadableError as error:
        yield malformed(setting, value, str(error), field=field)
        return
    if read != value or (type(read) is not type(value) and setting != "tags"):
        yield malformed(setting, value, f"give {read!r}, of type {type(read).__name__}", field=field)


def malformed(setting: str, got: Any, fix: str, *, field: str | None = None) -> Problem:
    """The problem of a value that does not have the form of a setting."""
    form = SETTINGS[setting].form
    if setting == "availability_zone_id" and _ZONE_NAME.fullmatch(str(got)):
        fix = "that is a zone name, which means another zone in every account; give the id, see `trn types`"
    return Problem(
        key=field or setting, got=got, allowed=form.allowed, nearest=nearest(str(got), form.choices), fix=fix
    )


def range_problems(setting: str, value: int, unit: str, *, field: str) -> Iterator[Problem]:
    """Whether a number is in the range of a setting. unit: of the number, such as minutes."""
    form = SETTINGS[setting].form
    assert isinstance(form, WholeNumber)
    if value < form.smallest or (form.largest is not None and value > form.largest):
        most = f" to {form.largest} {unit}" if form.largest is not None else f" {unit} or more"
        fix = "choose a value in this range"
        yield Problem(key=field, got=f"{value} {unit}", allowed=f"{form.smallest}{most}", fix=fix)
