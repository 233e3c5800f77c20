"""The batch script of a job on AWS PCS, as text."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.test_bash import shellcheck
from trainium_core.engines.pcs.batch_script import batch_script
from trainium_core.jobs.job import new_job
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan

PLAN = Plan.of(instance_type="trn2.48xlarge", region="us-east-2", nodes=4, stacks=("pcs",))
NOW = datetime(2026, 11, 24, 16, 0, tzinfo=UTC)


def script(**request: Any) -> str:
    job = new_job(PLAN, JobRequest(script=Path("train.py"), **request), script="train.py", now=NOW)
    return batch_script(PLAN, job, queue="trn")


def options(text: str) -> dict[str, str]:
    found = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", text, re.MULTILINE)
    return dict(found)


def test_job_gets_whole_nodes_with_one_task_each() -> None:
    found = options(script(nodes=2))
    assert found["exclusive"] == ""
    assert (found["nodes"], found["ntasks-per-node"], found["gres"]) == ("2", "1", "neuron:16")
    assert (found["job-name"], found["partition"]) == ("train-20261124-160000", "trn")


@pytest.mark.parametrize(("retries", "option"), [(0, "no-requeue"), (2, "requeue")])
def test_slurm_requeues_only_jobs_with_retries(retries: int, option: str) -> None:
    assert {"no-requeue", "requeue"} & {*options(script(retries=retries))} == {option}


@pytest.mark.parametrize(("minutes", "time"), [(None, None), (90, "110")])
def test_slurm_leaves_time_for_the_results_beyond_the_limit(minutes: int | None, time: str | None) -> None:
    assert options(script(time_limit_minutes=minutes)).get("time") == time


@pytest.mark.parametrize("command", ["python evaluate.py", "set -e\npython a.py\npython b.py\n", "echo 'a\nb'\n\nexit"])
def test_command_is_shown_as_a_comment_only(command: str) -> None:
    job = new_job(PLAN, JobRequest(command=command, name="a", setup=command), script=None, now=NOW)
    text = batch_script(PLAN, job, queue="trn")
    code = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(code) == 2
    assert shellcheck(text) == ""


def test_torchrun_is_shown_with_the_processes_of_a_node() -> None:
    assert "#     torchrun --nnodes=$TRN_NODES --nproc_per_node=64 --node_rank=$TRN_NODE_RANK" in script()
