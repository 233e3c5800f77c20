"""`trn types`."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.core.test_catalog_overlay import TOMORROW
from trainium_cli.exit_codes import ExitCode
from trainium_core.catalog.catalog import builtin_catalog

CATALOG = builtin_catalog()


@pytest.mark.parametrize("columns", ["80", "120"])
def test_every_type_and_zone_is_shown_in_full_at_any_usual_width(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = run("types")
    assert shown.exit_code == ExitCode.OK
    for entry in CATALOG.values():
        assert entry.name in shown.stdout
        assert all(" ".join(zones) in shown.stdout for zones in entry.zones.values())
    assert max(map(len, shown.stdout.splitlines())) <= int(columns)
    assert "…" not in shown.stdout


def test_cores_are_what_training_sees_and_in_brackets_the_physical_ones() -> None:
    rows = [line.split() for line in run("types").stdout.splitlines() if line.startswith("trn2.48xlarge")]
    assert rows[0][:5] == ["trn2.48xlarge", "16", "64", "(128)", "1536"]


def test_the_sources_are_reported_with_their_dates() -> None:
    shown = run("types").stdout
    assert all(f"Source, {source['date']}: " in shown for source in CATALOG.sources.values())


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


@pytest.mark.parametrize("content", ["", "not toml"])
def test_a_file_that_is_no_catalogue_is_refused_without_a_traceback(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.toml").write_text(content)
    ended = run("types", "--catalog", str(tmp_path / "mine.toml"))
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"--catalog: got '{tmp_path / 'mine.toml'}'\n    allowed: a TOML file" in ended.stderr
    assert "\n    fix:     " in ended.stderr
    assert "Traceback" not in ended.stderr
