"""The settings of a plan, by group."""

from collections.abc import Iterator

from tools.reference.markdown import code, table, text
from trainium_core.plan.settings_by_key import GROUP_OF, GROUPS, SETTINGS
from trainium_core.problems import SETTING_PREFIX
from trainium_core.setting_schema.setting import Setting


def settings() -> str:
    parts = (f"## {group}\n\n{table(('setting', 'meaning', 'default', 'allowed'), _rows(group))}" for group in GROUPS)
    return "\n\n".join(['<div class="settings" markdown>', *parts, "</div>"])


def _rows(group: str) -> Iterator[tuple[str, ...]]:
    for key, one in SETTINGS.items():
        if GROUP_OF[key] == group:
            default = "**required**" if one.default_text is None else text(one.default_text)
            yield code(SETTING_PREFIX + key), _meaning(one), default, text(one.form.allowed)


def _meaning(one: Setting) -> str:
    return text(one.meaning) + (" &#8635;" if one.replaces_nodes else "")
