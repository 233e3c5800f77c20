"""`trn settings`."""

import json

import pytest

from tests.cli.running import run
from trainium_core.plan.settings_by_key import GROUP_OF, GROUPS, SETTINGS


def test_every_setting_is_shown_with_its_prefix() -> None:
    shown = run("settings").stdout
    assert all(f"trn:{name} " in shown for name in SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_json_holds_meaning_default_and_what_is_allowed(name: str) -> None:
    setting = SETTINGS[name]
    assert json.loads(run("settings", "--json").stdout)[f"trn:{name}"] == {
        "group": GROUP_OF[name],
        "meaning": setting.meaning,
        "default": setting.default_text,
        "required": setting.default_text is None,
        "allowed": setting.form.allowed,
    }


@pytest.mark.parametrize("columns", ["80", "120"])
def test_it_fits_the_screen(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, run("settings").stdout.splitlines())) <= int(columns)


def shown_names(*arguments: str) -> set[str]:
    return set(json.loads(run("settings", *arguments, "--json").stdout))


@pytest.mark.parametrize("name", ["nodes", "trn:nodes"])
def test_one_setting_is_shown_by_its_name(name: str) -> None:
    assert shown_names(name) == {"trn:nodes"}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_shown_by_its_name(group: str) -> None:
    assert shown_names(group) == {f"trn:{name}" for name, of in GROUP_OF.items() if of == group}


def test_a_word_of_the_meaning_finds_settings() -> None:
    assert "trn:budget_usd" in shown_names("budget")


def test_a_name_that_nothing_has_is_refused_with_the_nearest_and_the_groups() -> None:
    ended = run("settings", "capcity")
    assert ended.exit_code == 2
    assert "nearest: capacity; groups: cluster, network" in ended.stderr
