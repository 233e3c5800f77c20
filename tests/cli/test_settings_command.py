"""`trn settings`."""

import json

import pytest

from tests.cli.running import run
from trainium_core.plan.settings import SETTINGS


def test_every_setting_is_shown_with_its_prefix() -> None:
    shown = run("settings").stdout
    assert all(f"trn:{name} " in shown for name in SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_json_holds_meaning_default_and_what_is_allowed(name: str) -> None:
    setting = SETTINGS[name]
    assert json.loads(run("settings", "--json").stdout)[f"trn:{name}"] == {
        "meaning": setting.meaning,
        "default": setting.default_text,
        "required": setting.default_text is None,
        "allowed": setting.form.allowed,
    }


@pytest.mark.parametrize("columns", ["80", "120"])
def test_it_fits_the_screen(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, run("settings").stdout.splitlines())) <= int(columns)
