"""`trn plan`: what follows from a plan, and how a bad one is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode


@pytest.fixture(autouse=True)
def _in_an_empty_folder_on_a_wide_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.parametrize(
    "says",
    [
        "trn-pilot: 4 nodes of trn1.32xlarge, on-demand, in us-west-2 (usw2-az1)",
        "16 Trainium with 32 GiB each; 32 NeuronCores for training",
        "card 0: efa (device 0); cards 1 to 7: efa (device 1); 800 Gbps in all",
        "512 GiB gp3, encrypted",
        "/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id",
        "new, 10.42.0.0/16",
        "vpc-endpoints: interface endpoints for sessions",
        "a new group, strategy cluster",
        "a new S3 bucket; goes with the cluster, graphs expire after 90 days",
        "trn:cluster=trn-pilot",
        "512 vCPUs of L-2C3B7624, Running On-Demand Trn instances",
        "32 of the 32763 of the subnet",
        "bash -lc 'torchrun --nnodes=4 --nproc_per_node=32 --node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE "
        "--master_port=41000 train.py'",
        "The plan is valid. AWS was not asked",
    ],
)
def test_a_plan_is_shown_with(says: str) -> None:
    shown = run("plan", *GOOD, "-c", "trn:nodes=4")
    assert shown.exit_code == ExitCode.OK
    assert says in shown.stdout


def test_an_own_vpc_is_reported_as_yours() -> None:
    vpc = ("-c", "trn:vpc_id=vpc-0123456789abcdef0", "-c", "trn:subnet_id=subnet-0123456789abcdef0")
    shown = run("plan", *GOOD, *vpc, "-c", "trn:cache_bucket=my-cache").stdout
    assert "(the zone of subnet-0123456789abcdef0)" in shown
    assert "vpc-0123456789abcdef0, subnet-0123456789abcdef0 (yours)" in shown
    assert "existing: as your VPC has it" in shown
    assert "my-cache; outlives the cluster" in shown
    assert "8 of the 65531 of the largest subnet there is" in shown


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("trn:fsx_lustre=1200",), "/fsx           a new FSx for Lustre file system of 1200 GiB; goes with the"),
        (("trn:efs=new", "trn:file_systems_at_destroy=retain"), "/efs           a new EFS file system; outlives"),
        (("trn:efs=fs-0123456789abcdef0",), "/efs           fs-0123456789abcdef0 (yours), by a new mount target"),
    ],
)
def test_file_systems_are_shown_where_nodes_find_them(settings: tuple[str, ...], says: str) -> None:
    given = [word for setting in settings for word in ("-c", setting)]
    assert says in run("plan", *GOOD, *given).stdout


@pytest.mark.parametrize(
    ("capacity", "says"),
    [
        ("capacity-block", "not known: no source says what this capacity counts against"),
        ("reservation", "none: the capacity counted when it was reserved"),
    ],
)
def test_reserved_capacity_shows_its_reservation_and_no_quota(capacity: str, says: str) -> None:
    reserved = ("-c", f"trn:capacity={capacity}", "-c", "trn:reservation_id=cr-0123456789abcdef0")
    shown = run("plan", *GOOD, *reserved).stdout
    assert says in shown
    assert "cr-0123456789abcdef0" in shown
    assert "no group" in shown


def test_warnings_are_shown_and_do_not_block() -> None:
    ended = run("plan", *GOOD, "-c", "trn:root_volume_gib=100")
    assert ended.exit_code == ExitCode.OK
    assert "warning: trn:root_volume_gib: the Neuron documentation advises 512 GiB" in ended.stdout


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ((), "Pilot's end    none"),
        (("trn:ends=5d",), "Pilot's end    5d after the first deployment: no nodes from then on; the rest stays"),
        (
            ("trn:ends=2099-01-01T18:00 Europe/Berlin", "trn:ends_action=destroy"),
            "Pilot's end    at 2099-01-01T17:00Z: the stack is deleted",
        ),
    ],
    ids=["none", "duration", "instant"],
)
def test_the_end_of_the_pilot_is_shown(settings: tuple[str, ...], says: str) -> None:
    assert says in run("plan", *GOOD, *[word for one in settings for word in ("-c", one)]).stdout


def test_a_pilot_that_has_ended_is_refused() -> None:
    ended = run("plan", *GOOD, "-c", "trn:ends=2020-01-01T00:00Z", "--json")
    assert ended.exit_code == ExitCode.BAD_INPUT
    (problem,) = json.loads(ended.stdout)["problems"]
    assert (problem["key"], problem["got"]) == ("ends", "2020-01-01T00:00Z")
    assert "trn extend 8h" in problem["fix"]


def test_json_holds_the_settings_in_effect_and_every_projection() -> None:
    shown = json.loads(run("plan", *GOOD, "-c", "trn:nodes=2", "--json").stdout)
    assert shown["plan"]["instance_type"] == "trn1.32xlarge"
    assert (shown["zone_id"], shown["addresses_needed"], shown["neuron_cores_per_node"]) == ("usw2-az1", 16, 32)
    assert shown["quota_need"] == {"code": "L-2C3B7624", "name": "Running On-Demand Trn instances", "vcpus": 256}
    assert [i["device"] for i in shown["network_interfaces"]] == [0, 1, 1, 1, 1, 1, 1, 1]
    assert list(shown["warnings"]) == ["ends"]


def test_cdk_json_of_the_working_directory_is_read_and_overridden() -> None:
    context = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 3}
    Path("cdk.json").write_text(json.dumps({"context": context}))
    assert json.loads(run("plan", "--json").stdout)["plan"]["nodes"] == 3
    assert json.loads(run("plan", "--json", "--context", "trn:nodes=5").stdout)["plan"]["nodes"] == 5


def test_another_file_can_be_named() -> None:
    Path("big.json").write_text(
        json.dumps({"context": {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2"}})
    )
    assert run("plan", "--file", "big.json").exit_code == ExitCode.OK


def test_without_settings_what_is_missing_is_reported() -> None:
    ended = run("plan")
    assert (ended.exit_code, ended.stdout) == (ExitCode.BAD_INPUT, "")
    assert "cdk.json" in ended.stderr


def test_a_plan_for_other_stacks_says_that_it_shows_the_cluster() -> None:
    shown = " ".join(run("plan", *GOOD, "-c", "trn:stacks=hyperpod").stdout.split())
    assert "warning: trn:stacks: this is the plan of TrnClusterStack; for HyperPodStack see `trn estimate`" in shown
    assert "trn:stacks" not in run("plan", *GOOD).stdout


def test_a_bad_plan_is_reported_on_standard_error_with_every_problem() -> None:
    ended = run("plan", *GOOD, "-c", "trn:nodes=four", "-c", "trn:node=2", "-c", "trn:vpc_id=x")
    assert (ended.exit_code, ended.stdout) == (ExitCode.BAD_INPUT, "")
    assert ended.stderr.startswith("The plan has 3 problems; nothing was deployed.")
    assert "trn:node: got '2'" in ended.stderr
    assert "nearest: nodes" in ended.stderr


def test_a_bad_plan_is_json_too_when_json_is_requested() -> None:
    ended = run("plan", *GOOD, "-c", "trn:capacity=ondemand", "--json")
    assert ended.exit_code == ExitCode.BAD_INPUT
    (problem,) = json.loads(ended.stdout)["problems"]
    assert (problem["key"], problem["got"], problem["nearest"]) == ("capacity", "ondemand", "on-demand")
    assert problem["allowed"]
    assert problem["fix"]
