"""`trn settings`: every setting with its default, meaning and what is allowed."""

import click

from trainium_cli.plan_options import json_option
from trainium_cli.terminal import console, pairs, print_json
from trainium_core.plan.settings import SETTINGS
from trainium_core.problems import SETTING_PREFIX
from trainium_core.settings.setting import Setting


@click.command()
@json_option
def settings(as_json: bool) -> None:
    """Show every setting of a plan.

    A setting stands in the context of cdk.json, or is given with -c to `cdk` and `trn` alike.
    """
    if as_json:
        print_json(
            {
                SETTING_PREFIX + name: {
                    "meaning": setting.meaning,
                    "default": setting.default_text,
                    "required": setting.default_text is None,
                    "allowed": setting.form.allowed,
                }
                for name, setting in SETTINGS.items()
            }
        )
        return
    longest = max(len(SETTING_PREFIX + name) for name in SETTINGS)
    rows = [(SETTING_PREFIX + name, _explained(setting)) for name, setting in SETTINGS.items()]
    console().print(pairs(rows, label_width=longest))


def _explained(setting: Setting) -> str:
    default = "must be given" if setting.default_text is None else f"default: {setting.default_text}"
    return f"{setting.meaning}\n{default}\nallowed: {setting.form.allowed}"
