"""`trn types`."""

import json
from pathlib import Path

from tests.cli.running import run
from tests.core.test_catalog_overlay import TOMORROW
from trainium_cli.exit_codes import ExitCode
from trainium_core.catalog.catalog import builtin_catalog

CATALOG = builtin_catalog()


def test_json_holds_every_value_with_its_source() -> None:
    shown = json.loads(run("types", "--json").stdout)
    assert list(shown) == list(CATALOG)
    assert shown["trn2.48xlarge"]["neuron_cores"] == 64
    assert shown["trn1.32xlarge"]["zones"]["us-east-2"] == ["use2-az3"]
    assert shown["trn1.32xlarge"]["sources"]["vcpus"]["date"] == "2026-10-03"


def test_a_region_leaves_only_what_it_offers() -> None:
    assert list(json.loads(run("types", "--region", "sa-east-1", "--json").stdout)) == ["trn2.3xlarge"]
    shown = run("types", "--region", "us-west-2").stdout
    assert "us-west-2" in shown
    assert "us-east-1" not in shown


def test_a_region_without_trainium_is_refused_with_the_nearest() -> None:
    ended = run("types", "--region", "us-west-1")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--region: got 'us-west-1'\n    allowed: " in ended.stderr
    assert "; nearest: us-west-2\n    fix:     choose us-west-2" in ended.stderr


def test_types_of_a_file_of_your_own_are_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TOMORROW)
    assert "trn9.96xlarge" in run("types", "--catalog", str(tmp_path / "mine.toml")).stdout
