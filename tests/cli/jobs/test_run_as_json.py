"""`trn run --json` with --wake."""

import json
from typing import Any

import pytest

from tests.cli.jobs.cluster_with_jobs import Cluster
from tests.cli.jobs.test_job_commands import run_to_the_end
from trainium_cli.jobs import run_command
from trainium_cli.terminal import say


def test_json_prints_only_the_state_on_standard_output(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def switch(*arguments: Any, **_: Any) -> str:
        say("The cluster changes.")
        return f"is {arguments[-1]}"

    monkeypatch.setattr(run_command, "switch", switch)
    ended, job = run_to_the_end(cluster, "succeeded", "--json", "--wake", "--yes")
    assert json.loads(ended.stdout)["job"]["id"] == job.id
    for text in ("The cluster changes.", "is awake", "is asleep"):
        assert text in ended.stderr
