"""`trn list` of an account without a region to search."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.cluster import list_command
from trainium_cli.exit_codes import ExitCode
from trainium_core.clusters.cluster import Cluster, ClusterList, ClusterStack
from trainium_core.costs.estimate import Total
from trainium_runtime.errors import SIGN_IN_OR_ENABLE, DeniedError, UnavailableError


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


def cluster(name: str, region: str, project: str) -> Cluster:
    stack = ClusterStack(name=f"{name}-TrnClusterStack", cluster=name, status="CREATE_COMPLETE", project=project)
    return Cluster(
        name=name, region=region, stacks=(stack,), nodes=(), per_hour=Total(usd=Decimal(0), unknown=0), ends=None
    )


class OtherRegions:
    """The stacks of the project `mine` by region; some regions cannot be read."""

    failing: Mapping[str, UnavailableError] = {}

    def __init__(self, region: str, **_: object) -> None:
        self.region = region

    def project_stacks(self, project: str) -> list[str]:
        assert project == "mine"
        if self.region in self.failing:
            raise self.failing[self.region]
        return ["old-TrnClusterStack"] if self.region == "us-east-1" else []


@pytest.mark.parametrize(
    ("failing", "code", "shown"),
    [
        ({}, ExitCode.OK, "Deployed by this project: new, old."),
        ({"us-east-2": DeniedError("no")}, ExitCode.OK, "because permissions are missing: us-east-2."),
        ({"us-east-2": UnavailableError("no", remedy=SIGN_IN_OR_ENABLE)}, ExitCode.OK, "new, old."),
        ({"us-east-2": UnavailableError("no answer")}, ExitCode.UNKNOWN, "Could not be read in us-east-2: no answer"),
    ],
)
def test_clusters_of_the_project_in_other_regions_are_shown(
    monkeypatch: pytest.MonkeyPatch, failing: Mapping[str, UnavailableError], code: ExitCode, shown: str
) -> None:
    def clusters(_prices: object, regions: list[str], _clients: object) -> list[ClusterList]:
        named = {"us-west-2": "new", "us-east-1": "old"}
        others = [cluster("theirs", region, "theirs") for region in regions if region == "us-east-1"]
        return [
            ClusterList(region=region, clusters=(cluster(named[region], region, "mine"), *others)) for region in regions
        ]

    monkeypatch.setattr(list_command, "AwsClustersAccount", NoRegions)
    monkeypatch.setattr(list_command, "AwsStacks", OtherRegions)
    monkeypatch.setattr(list_command, "_clusters_in", clusters)
    monkeypatch.setattr(OtherRegions, "failing", failing)
    listed = run("list", *GOOD, "-c", "trn:project_id=mine")
    assert (listed.exit_code, "theirs" in listed.stdout) == (code, False), listed.output
    assert shown in listed.stdout
    in_region = run("list", *GOOD, "-c", "trn:project_id=mine", "--region", "us-west-2")
    assert "old" not in in_region.stdout
