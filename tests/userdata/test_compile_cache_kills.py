"""SIGKILL at every point of a write-back, a fill, the cleanup, and a compilation with its lock."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trn_node.imds import Credentials

FEWEST_POINTS = 10

pytestmark = pytest.mark.usefixtures("s3")


@pytest.mark.parametrize(
    ("work", "stack"),
    [
        ("store", "xla"),
        ("store", "jax"),
        ("read", "xla"),
        ("read", "jax"),
        ("remove", "xla"),
        ("compile", "xla"),
        ("compile", "native"),
    ],
)
def test_node_killed_at_any_point_leaves_complete_entries(
    keys: Credentials, tmp_path: Path, work: str, stack: str
) -> None:
    assert last_point(keys, tmp_path, work, stack) > FEWEST_POINTS


def last_point(keys: Credentials, folder: Path, work: str, stack: str) -> int:
    """The number of the last point at which the node was killed."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.userdata.killed_node", work, stack, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "KEYS": " ".join(keys)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout.split()[-1])
