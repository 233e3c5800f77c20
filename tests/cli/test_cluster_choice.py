"""The cluster that a command acts on, and the message if it is ambiguous."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.cluster.test_nodes_command import VERIFIED, FakeNodes
from tests.cli.conftest import FakeLocating
from tests.cli.running import GOOD, run
from tests.core.aws_stubs import stack_record
from trainium_cli.cluster import nodes_command
from trainium_cli.cluster_choice import read_cluster_plan
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_wire.stack_record import StackRecord

REGION = ("--region", "us-west-2")


def record(cluster: str, stack: str = "Training") -> StackRecord:
    return stack_record(stack, cluster=cluster)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clusters: FakeLocating) -> FakeNodes:
    """One cluster of another app, and a folder without a cdk.json."""
    clusters.recorded = [record("web-train")]
    fake = FakeNodes([VERIFIED])

    def fake_of(_region: str, **_: object) -> FakeNodes:
        return fake

    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(nodes_command, "AwsNodes", fake_of)
    return fake


def test_only_cluster_of_region_is_used_without_cdk_json(nodes: FakeNodes) -> None:
    assert run("nodes", *REGION).exit_code == ExitCode.OK
    assert nodes.requests == ["Training"]


def test_nodes_of_an_app_with_only_jobs_on_eks_are_found(nodes: FakeNodes, clusters: FakeLocating) -> None:
    clusters.recorded = [stack_record("TrainingOnEks", cluster="eks-trn1", engine="eks")]
    assert run("nodes", *REGION, "--cluster", "eks-trn1").exit_code == ExitCode.OK
    assert nodes.requests == ["TrainingOnEks"]


def test_missing_region_is_reported_with_ways_to_set_it(nodes: FakeNodes) -> None:
    ended = run("nodes")
    assert (ended.exit_code, nodes.requests) == (ExitCode.BAD_INPUT, [])
    assert "pass --region, set AWS_REGION" in ended.stderr


def test_ambiguous_cluster_requires_a_name(nodes: FakeNodes, clusters: FakeLocating) -> None:
    clusters.recorded = [record("web-train"), record("other", "Other")]
    ended = run("nodes", *REGION)
    assert (ended.exit_code, nodes.requests) == (ExitCode.BAD_INPUT, [])
    assert ended.stderr == "us-west-2 has 2 clusters: other, web-train. Select one with --cluster.\n"
    run("nodes", *REGION, "--cluster", "other")
    assert nodes.requests == ["Other"]


def test_plan_of_a_cluster_has_the_settings_of_all_its_engines(clusters: FakeLocating) -> None:
    node_settings = {"instance_type": "trn1.32xlarge", "nodes": 2}
    training = {"instance_type": "trn2.48xlarge", "nodes": 9, "ends": "3d", "sagemaker_vpc": "on"}
    clusters.recorded = [
        stack_record("A", engine="sagemaker", settings=training),
        stack_record("B", settings=node_settings),
        stack_record("C", engine="pcs", settings={**node_settings, "pcs_idle_minutes": 7}),
    ]
    plan = read_cluster_plan(Invocation(cluster="trn-pilot", region="us-west-2"))
    assert plan.stacks == ("cluster", "pcs", "sagemaker")
    assert (plan.instance_type, plan.nodes, plan.pilot.ends) == ("trn1.32xlarge", 2, None)
    assert (plan.pcs.idle_minutes, plan.sagemaker.vpc) == (7, True)


def test_unknown_name_is_refused_with_the_nearest(nodes: FakeNodes) -> None:  # noqa: ARG001
    ended = run("nodes", *REGION, "--cluster", "web-trian")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "no cluster is named 'web-trian'; nearest: web-train; known: web-train" in ended.stderr


def test_undeployed_plan_lists_other_clusters(nodes: FakeNodes) -> None:
    nodes.answers = [None]
    ended = run("nodes", *GOOD)
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Other clusters, for --cluster: web-train." in ended.stderr


@pytest.mark.parametrize(
    ("context", "arguments"),
    [
        ({"trn:nodes": "many", "trn:cluster_name": "web-train", "trn:region": "us-west-2"}, ()),
        ({"trn:nodez": 2, "trn:cluster_name": "web-train", "trn:region": "us-west-2"}, ()),
        ({"trn:nodes": "many"}, (*REGION, "--cluster", "web-train")),
        (["not an object"], (*REGION, "--cluster", "web-train")),
    ],
    ids=str,
)
def test_deployed_cluster_is_used_despite_mistakes(nodes: FakeNodes, context: object, arguments: Sequence[str]) -> None:
    Path("cdk.json").write_text(json.dumps({"context": context}))
    ended = run("nodes", *arguments)
    assert (ended.exit_code, nodes.requests) == (ExitCode.OK, ["Training"]), ended.stderr
    assert "mistakes (" in ended.stderr
    assert "web-train is used as deployed" in ended.stderr


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"trn:clustername": "other", "trn:region": "us-west-2"}, ()),
        ({"trn:nodes": "many", "trn:region": 5}, ("--cluster", "web-train")),
    ],
    ids=str,
)
def test_mistake_in_the_name_or_region_requires_the_options(
    nodes: FakeNodes, clusters: FakeLocating, settings: dict[str, object], arguments: Sequence[str]
) -> None:
    clusters.recorded = [record("trn-pilot")]
    Path("cdk.json").write_text(json.dumps({"context": settings}))
    ended = run("nodes", *arguments)
    assert (ended.exit_code, nodes.requests) == (ExitCode.BAD_INPUT, [])
    assert "--cluster and --region select a deployed cluster" in ended.stderr


def test_unreadable_region_is_unknown_and_not_empty(nodes: FakeNodes, clusters: FakeLocating) -> None:  # noqa: ARG001
    clusters.unavailable = "not allowed to read: the permission ssm:GetParametersByPath is missing"
    ended = run("nodes", *REGION)
    assert ended.exit_code == ExitCode.UNKNOWN
    assert "ssm:GetParametersByPath" in ended.stderr
