"""`trn plan`: a plan's consequences, and how an invalid plan is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode


@pytest.mark.parametrize(
    "says",
    [
        "trn-pilot: 4 nodes of trn1.32xlarge, on-demand, in us-west-2 (usw2-az1)",
        "512 vCPUs of L-2C3B7624, Running On-Demand Trn instances",
        "bash -lc 'torchrun --nnodes=4 --nproc_per_node=32 --node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE "
        "--master_port=41000 train.py'",
        "The plan is valid.",
    ],
)
def test_plan_is_shown_with_its_consequences(says: str) -> None:
    shown = run("plan", *GOOD, "-c", "trn:nodes=4")
    assert shown.exit_code == ExitCode.OK
    assert says in shown.stdout


@pytest.mark.parametrize(
    ("stacks", "shown", "hidden"),
    [
        (
            "sagemaker",
            ["Each job 1 x ml.trn1.32xlarge", "trn:fsx_lustre: SageMakerTrainingStack"],
            ["/fsx", "torchrun"],
        ),
        ("pcs", ["Pilot's end 8h after the first deployment: the stack is deleted", "/fsx"], ["Readiness", "torchrun"]),
        ("cluster,sagemaker", ["Readiness", "torchrun", "Each job", "the nodes are terminated"], []),
    ],
)
def test_plan_shows_only_what_its_stacks_create(stacks: str, shown: list[str], hidden: list[str]) -> None:
    settings = ("-c", f"trn:stacks={stacks}", "-c", "trn:ends=8h", "-c", "trn:fsx_lustre=1200", "-c", "trn:nodes=1")
    printed = " ".join(run("plan", *GOOD, *settings).stdout.split())
    assert [text in printed for text in shown] == [True] * len(shown), printed
    assert [text in printed for text in hidden] == [False] * len(hidden), printed


def test_warnings_are_shown_and_do_not_block() -> None:
    ended = run("plan", *GOOD, "-c", "trn:root_volume_gib=100")
    assert ended.exit_code == ExitCode.OK
    assert "warning: trn:root_volume_gib: the Neuron documentation advises 512 GiB" in ended.stdout


def test_ended_pilot_is_refused() -> None:
    ended = run("plan", *GOOD, "-c", "trn:ends=2020-01-01T00:00Z", "--json")
    assert ended.exit_code == ExitCode.BAD_INPUT
    (problem,) = json.loads(ended.stdout)["problems"]
    assert (problem["key"], problem["got"]) == ("ends", "2020-01-01T00:00Z")
    assert "trn extend 8h" in problem["fix"]


def test_json_has_effective_settings_and_derived_values() -> None:
    shown = json.loads(run("plan", *GOOD, "-c", "trn:nodes=2", "--json").stdout)
    assert shown["plan"]["instance_type"] == "trn1.32xlarge"
    assert (shown["zone_id"], shown["addresses_needed"], shown["neuron_cores_per_node"]) == ("usw2-az1", 16, 32)
    assert shown["quota_need"] == {"code": "L-2C3B7624", "name": "Running On-Demand Trn instances", "vcpus": 256}
    assert [i["device"] for i in shown["network_interfaces"]] == [0, 1, 1, 1, 1, 1, 1, 1]
    assert list(shown["warnings"]) == ["ami", "ends"]


def test_cdk_json_of_working_directory_is_read_and_overridden() -> None:
    context = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 3}
    Path("cdk.json").write_text(json.dumps({"context": context}))
    assert json.loads(run("plan", "--json").stdout)["plan"]["nodes"] == 3
    assert json.loads(run("plan", "--json", "--context", "trn:nodes=5").stdout)["plan"]["nodes"] == 5


def test_invalid_plan_is_json_if_json_is_requested() -> None:
    ended = run("plan", *GOOD, "-c", "trn:capacity=ondemand", "--json")
    assert ended.exit_code == ExitCode.BAD_INPUT
    (problem,) = json.loads(ended.stdout)["problems"]
    assert (problem["key"], problem["got"], problem["nearest"]) == ("capacity", "ondemand", "on-demand")
    assert problem["allowed"]
    assert problem["fix"]
