"""The commands in the outputs of a stack."""

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
        destroy=destroy_command("TrnClusterStack", "cluster", cluster_name),
        sessions=sessions,
    )
    return {step.name: step.value for step in found}


def test_commands_name_cluster_and_region() -> None:
    shown = steps(cluster_name="team-a")
    for name in ("Nodes", "Sleep", "Wake"):
        assert shown[name] == f"trn {name.lower()} --cluster team-a --region us-west-2"
    assert shown["Destroy"] == "cdk destroy TrnClusterStack -c trn:cluster_name=team-a"


@pytest.mark.parametrize("name", ["Session", "Nodes", "Torchrun", "Sleep", "Wake", "Destroy"])
def test_commands_are_valid_shell(name: str) -> None:
    command = steps()[name]
    subprocess.run(["bash", "-n", "-c", command], check=True, timeout=60)


def test_session_shell_runs_as_the_default_user(tmp_path: Path) -> None:
    """Session Manager's agent passes the command to `sh -c`; user 0 replaces the image's 1000, which does not exist
    here.
    """
    _, _, rest = steps()["Session"].partition("command='")
    (tmp_path / "sudo").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    command = rest.partition("'")[0].replace("1000", "0")
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, env={"PATH": path})
    assert found.stdout == "-iu root\n"
