"""The commands a person is given once the cluster stands."""

import os
import subprocess
from pathlib import Path

import pytest

from trainium_core.nodes.next_steps import destroy_command, next_steps


def steps(*, cluster_name: str = "trn-pilot", sessions: bool = True) -> dict[str, str]:
    found = next_steps(
        cluster_name=cluster_name,
        nodes=3,
        processes=32,
        region="us-west-2",
        group_name="the-group",
        cache_url="s3://bucket/cache",
        destroy=destroy_command("TrnClusterStack", cluster_name),
        sessions=sessions,
    )
    return {step.name: step.value for step in found}


def test_the_commands_of_another_cluster_than_the_default_name_it() -> None:
    shown = steps(cluster_name="team-a")
    for name, command in (("Nodes", "trn nodes"), ("Sleep", "trn sleep"), ("Destroy", "cdk destroy TrnClusterStack")):
        assert shown[name] == f"{command} -c trn:cluster_name=team-a"


@pytest.mark.parametrize("name", ["Session", "Nodes", "Torchrun", "Sleep", "Wake", "Destroy"])
def test_every_command_is_one_that_a_shell_can_read(name: str) -> None:
    command = steps()[name]
    subprocess.run(["bash", "-n", "-c", command], check=True, timeout=60)


def test_the_shell_of_a_session_is_that_of_the_first_user(tmp_path: Path) -> None:
    """Session Manager's agent hands the command to `sh -c`; user 0 stands for the image's 1000, which is not here."""
    _, _, rest = steps()["Session"].partition("command='")
    (tmp_path / "sudo").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    command = rest.partition("'")[0].replace("1000", "0")
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, env={"PATH": path})
    assert found.stdout == "-iu root\n"
