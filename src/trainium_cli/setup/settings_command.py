"""`trn settings`: every setting with its default, meaning and allowed values."""

from collections.abc import Mapping

import click

from trainium_cli.completion_values import complete_setting_name
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.terminal import console, pairs, print_json
from trainium_core.plan.settings_by_key import GROUP_OF, GROUPS, SETTINGS
from trainium_core.problems import SETTING_PREFIX, nearest
from trainium_core.setting_schema.setting import Setting


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_setting_name)
@json_option
@pass_invocation
def settings(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Show every setting of a plan, or some.

    NAME is a setting, a group, or a word to search for in names and descriptions. Write settings into the context of
    cdk.json, or pass them to `cdk` and `trn` with -c.
    """
    chosen = {key: SETTINGS[key] for name in names for key in _matching(name)} if names else SETTINGS
    if invocation.as_json:
        print_json({SETTING_PREFIX + key: _as_json(setting) for key, setting in chosen.items()})
    else:
        _show(chosen)


def _matching(name: str) -> tuple[str, ...]:
    """The settings that a name selects. Raises UsageError if there are none."""
    word = name.removeprefix(SETTING_PREFIX).casefold()
    if word in SETTINGS:
        return (word,)
    if word.replace("_", "-") in GROUPS:
        return tuple(key for key, group in GROUP_OF.items() if group == word.replace("_", "-"))
    found = tuple(key for key, setting in SETTINGS.items() if word in f"{key} {setting.meaning}".casefold())
    if not found or not word:
        close = nearest(word, (*SETTINGS, *GROUPS))
        hint = f"; nearest: {close}" if close else ""
        raise click.UsageError(f"no setting has {name!r} in its name or description{hint}; groups: {', '.join(GROUPS)}")
    return found


def _show(chosen: Mapping[str, Setting]) -> None:
    longest = max(len(SETTING_PREFIX + key) for key in chosen)
    for number, group in enumerate(dict.fromkeys(GROUP_OF[key] for key in chosen)):
        console().print(f"{chr(10) if number else ''}{group}", style="bold")
        of_group = [(key, setting) for key, setting in chosen.items() if GROUP_OF[key] == group]
        rows = [(SETTING_PREFIX + key, _explained(setting)) for key, setting in of_group]
        console().print(pairs(rows, label_width=longest))


def _as_json(setting: Setting) -> dict[str, object]:
    return {
        "group": GROUP_OF[setting.key],
        "meaning": setting.meaning,
        "default": setting.default_text,
        "required": setting.default_text is None,
        "allowed": setting.form.allowed,
    }


def _explained(setting: Setting) -> str:
    default = "required" if setting.default_text is None else f"default: {setting.default_text}"
    return f"{setting.meaning}\n{default}\nallowed: {setting.form.allowed}"
