"""`trn run --json` with --wake and --precompile."""

import json
from typing import Any

import pytest

from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.jobs.test_job_commands import run_to_the_end
from tests.cli.running import run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_cli.jobs import precompiling, run_command
from trainium_cli.terminal import print_json, say


def test_json_prints_only_the_state_on_standard_output(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def switch(*arguments: Any, **_: Any) -> str:
        say("The cluster changes.")
        return f"is {arguments[-1]}"

    def precompile_first(invocation: Invocation, *_: Any, **_options: Any) -> None:
        print_json({}) if invocation.as_json else say("Compiled.")

    monkeypatch.setattr(run_command, "switch", switch)
    monkeypatch.setattr(precompiling, "precompile_first", precompile_first)
    ended, job = run_to_the_end(cluster, "succeeded", "--json", "--wake", "--precompile", "--yes")
    assert json.loads(ended.stdout)["job"]["id"] == job.id
    for text in ("The cluster changes.", "is awake", "Compiled.", "is asleep"):
        assert text in ended.stderr


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("option", ["--wake", "--precompile"])
def test_json_does_not_prompt(option: str) -> None:
    ended = run("run", *TWO, option, "--json", "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--json does not prompt: pass --yes as well" in ended.stderr
