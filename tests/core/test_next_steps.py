"""The commands a person is given once the cluster stands."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.core.plans import from_settings
from trainium_core.nodes.next_steps import next_steps
from trainium_core.nodes.torchrun import torchrun_command
from trainium_core.plan import Plan


def steps(plan: Plan) -> dict[str, str]:
    found = next_steps(plan, group_name="the-group", cache_url="s3://bucket/cache", construct_id="TrnClusterStack")
    return {step.name: step.value for step in found}


@pytest.mark.parametrize("nodes", [1, 2])
def test_every_cluster_has_every_step_in_the_order_it_is_wanted(nodes: int) -> None:
    message = steps(from_settings(nodes=nodes))
    assert list(message) == ["Session", "Nodes", "Torchrun", "CompileCache", "Sleep", "Wake", "Destroy"]


def test_without_a_way_out_no_session_is_promised() -> None:
    assert "Session" not in steps(from_settings(egress="none"))


def test_values_are_those_of_the_plan() -> None:
    plan = from_settings(nodes=3)
    printed = steps(plan)
    assert printed["Torchrun"] == torchrun_command(plan)
    assert printed["CompileCache"] == "s3://bucket/cache"
    assert (printed["Sleep"], printed["Wake"]) == ("trn sleep", "trn wake")
    assert printed["Destroy"] == "cdk destroy TrnClusterStack"


def test_the_commands_of_another_cluster_than_the_default_name_it() -> None:
    shown = steps(from_settings(cluster_name="team-a"))
    for name, command in (("Nodes", "trn nodes"), ("Sleep", "trn sleep"), ("Destroy", "cdk destroy TrnClusterStack")):
        assert shown[name] == f"{command} -c trn:cluster_name=team-a"


@pytest.mark.parametrize("name", ["Session", "Nodes", "Torchrun", "Sleep", "Wake", "Destroy"])
def test_every_command_is_one_that_a_shell_can_read(name: str) -> None:
    command = steps(from_settings(nodes=2))[name]
    subprocess.run(["bash", "-n", "-c", command], check=True, timeout=60)


def test_the_shell_of_a_session_is_that_of_the_first_user(tmp_path: Path) -> None:
    """Session Manager's agent hands the command to `sh -c`; user 0 stands for the image's 1000, which is not here."""
    _, _, rest = steps(from_settings(nodes=2))["Session"].partition("command='")
    (tmp_path / "sudo").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    command = rest.partition("'")[0].replace("1000", "0")
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, env={"PATH": path})
    assert found.stdout == "-iu root\n"


def test_every_call_names_the_region_of_the_plan() -> None:
    command = steps(from_settings(nodes=2))["Session"]
    assert command.count("aws ") == command.count("--region us-west-2")
