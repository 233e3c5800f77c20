"""`trn list` of an account without a region to search."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.cluster import list_command
from trainium_cli.exit_codes import ExitCode


class NoRegions:
    """An account that has enabled no region with Trainium."""

    def __init__(self, region: str, **_: object) -> None:
        self.region = region

    def identity(self) -> SimpleNamespace:
        return SimpleNamespace(account="123456789012")

    def enabled_regions(self) -> list[str]:
        return []


def test_region_of_cdk_json_is_searched_despite_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def none_in(_prices: object, regions: list[str], _clients: object) -> list[object]:
        searched.extend(regions)
        return []

    monkeypatch.setattr(list_command, "AwsClustersAccount", NoRegions)
    monkeypatch.setattr(list_command, "_clusters_in", none_in)
    Path("cdk.json").write_text('{"context": {"trn:nodes": "many", "trn:region": "eu-north-1"}}')
    assert run("list", "--json").exit_code == ExitCode.OK
    assert searched == ["eu-north-1"]


def test_account_without_regions_has_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_command, "AwsClustersAccount", NoRegions)
    listed = run("list", "--all-regions", *GOOD)
    assert (listed.exit_code, listed.stdout) == (ExitCode.OK, "no cluster of account 123456789012 in 0 regions\n")
