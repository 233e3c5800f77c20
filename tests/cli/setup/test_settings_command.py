"""`trn settings`: all settings, one, or a group."""

import json

import pytest

from tests.cli.running import run
from trainium_core.plan.settings_by_key import GROUP_OF, GROUPS, SETTINGS


def test_settings_are_shown_with_their_prefixes() -> None:
    shown = run("settings").stdout
    assert all(f"trn:{name} " in shown for name in SETTINGS)


def shown_names(*arguments: str) -> set[str]:
    return set(json.loads(run("settings", *arguments, "--json").stdout))


@pytest.mark.parametrize("name", ["nodes", "trn:nodes"])
def test_setting_is_shown_by_name(name: str) -> None:
    assert shown_names(name) == {"trn:nodes"}


@pytest.mark.parametrize("group", GROUPS)
def test_group_is_shown_by_name(group: str) -> None:
    assert shown_names(group) == {f"trn:{name}" for name, of in GROUP_OF.items() if of == group}


def test_unknown_setting_is_refused_with_the_nearest() -> None:
    ended = run("settings", "capcity")
    assert ended.exit_code == 2
    assert "nearest: capacity; groups: cluster, pilot" in ended.stderr
