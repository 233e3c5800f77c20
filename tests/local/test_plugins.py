"""Plug-ins: found by their entry points, their rows before those of the embedded AWS."""

from collections.abc import Mapping
from typing import Any

import pytest

import trainium_local_plugin
from trainium_local import plugins, seeds
from trainium_local.own_paths import WsgiApp


class Plugin:
    def seeds(self, table: str) -> Mapping[str, Any]:
        return {"public_images": {"family": ["of the plug-in"], "other": 1}}.get(table, {})

    def start(self, application: WsgiApp, *, stand_in_nodes: bool, fail_nodes: int) -> WsgiApp:  # noqa: ARG002
        return application


def test_the_plug_in_of_this_product_is_found() -> None:
    assert plugins.plugins() == (trainium_local_plugin,)


def test_without_plug_ins_there_are_the_quotas_of_other_families(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "plugins", lambda: ())
    assert seeds.table.__wrapped__("vcpu_quotas").keys() == {"inf", "standard"}


def test_rows_of_a_plug_in_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "plugins", lambda: ())
    own = seeds.table.__wrapped__("public_images")
    monkeypatch.setattr(seeds, "plugins", lambda: (Plugin(),))
    both = seeds.table.__wrapped__("public_images")
    assert both == {**own, "family": ["of the plug-in", *own["family"]], "other": 1}
