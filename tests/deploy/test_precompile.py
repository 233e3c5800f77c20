"""`trn precompile` on a deployed cluster: the host exists only for its job, whatever happens to job and command."""

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, Run
from tests.deploy.command import run_trn
from trainium_core.naming import STACK_NAME, precompile_group_name
from trainium_local.server import Settings

HOST = "r7i.24xlarge"
PLAN: Mapping[str, Any] = {
    "instance_type": "trn1.2xlarge",
    "region": "us-west-2",
    "nodes": 1,
    "precompile_instance_type": HOST,
}
OPTIONS = tuple(word for name, value in PLAN.items() for word in ("-c", f"trn:{name}={value}"))
GROUP = precompile_group_name(STACK_NAME, "trn-pilot")
TIMEOUT_SECONDS = 180


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    made = start_account(Settings())
    made.deploy(cluster_template(**PLAN))
    return made


def group(account: Account) -> Mapping[str, Any]:
    client = account.aws.client("autoscaling")
    (scaling_group,) = client.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    return scaling_group


def host_states(account: Account) -> list[str]:
    """The states of all hosts, including terminated ones."""
    pages = account.aws.client("ec2").describe_instances(Filters=[{"Name": "instance-type", "Values": [HOST]}])
    return [one["State"]["Name"] for reservation in pages["Reservations"] for one in reservation["Instances"]]


def precompile(account: Account, folder: Path, command: str, *arguments: str) -> Run:
    (folder / "job.toml").write_text(f'command = "{command}"\nname = "graphs"\nsource = "."\n')
    return run_trn(account, "precompile", *OPTIONS, "--yes", *arguments, str(folder / "job.toml"))


def await_no_host(account: Account) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while group(account)["DesiredCapacity"] or group(account)["Instances"]:
        assert time.monotonic() < deadline, "the host is still there"
        time.sleep(0.1)


def test_deployed_cluster_has_no_host(account: Account) -> None:
    assert (group(account)["MinSize"], group(account)["MaxSize"], group(account)["DesiredCapacity"]) == (0, 1, 0)


def test_followed_job_ends_with_its_host_of_unknown_price(account: Account, tmp_path: Path) -> None:
    ended = precompile(account, tmp_path, "echo target $NEURON_PLATFORM_TARGET_OVERRIDE of $TRN_NODES")
    assert ended.code == 0, ended.printed
    assert "target trn1 of 1" in ended.printed
    assert f"{HOST}, price unknown, ends at " in ended.printed
    assert re.search(r"^ *host +[\d.]+ .*, price unknown$", ended.printed, re.MULTILINE), ended.printed
    await_no_host(account)
    assert set(host_states(account)) == {"terminated"}


def test_host_of_a_detached_job_ends_after_its_failure(account: Account, tmp_path: Path) -> None:
    left = precompile(account, tmp_path, "exit 3", "--detach")
    assert left.code == 0, left.printed
    await_no_host(account)
    listed = json.loads(run_trn(account, "jobs", *OPTIONS, "--json").printed)
    assert [one["status"] for one in listed if one["job"]["id"].startswith("precompile-graphs-")][:1] == ["failed"]


def test_end_of_host_is_scheduled_after_the_time_limit(account: Account, tmp_path: Path) -> None:
    precompile(account, tmp_path, "true", "--time-limit-minutes", "60")
    client = account.aws.client("autoscaling")
    (action,) = client.describe_scheduled_actions(AutoScalingGroupName=GROUP)["ScheduledUpdateGroupActions"]
    assert action["DesiredCapacity"] == 0
    assert 80 * 60 < action["StartTime"].timestamp() - time.time() <= 90 * 60
    await_no_host(account)


def status_of(account: Account, job: str) -> Mapping[str, Any]:
    return json.loads(run_trn(account, "jobs", *OPTIONS, job, "--json").printed)


def newest_job(account: Account) -> str:
    listed = json.loads(run_trn(account, "jobs", *OPTIONS, "--json").printed)
    return str(listed[0]["job"]["id"])


def await_failed(account: Account, job: str) -> str:
    """Wait until the job has failed, and return the reason."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (state := status_of(account, job))["status"] != "failed":
        assert time.monotonic() < deadline, f"{job} is {state['status']}"
        time.sleep(0.1)
    return str(state["outcome"]["reason"])


def test_sleep_ends_the_host_and_fails_its_job(account: Account, tmp_path: Path) -> None:
    precompile(account, tmp_path, "sleep 600", "--detach")
    shown = run_trn(account, "status", *OPTIONS).printed
    assert f"Precompile   {HOST}" in shown
    assert run_trn(account, "sleep", *OPTIONS, "--yes", "--grace", "1s").code == 0
    await_no_host(account)
    assert await_failed(account, newest_job(account)).startswith("the host was terminated before its job ended")


def test_host_that_fails_to_launch_leaves_no_waiting_job(
    start_account: Callable[[Settings], Account], tmp_path: Path
) -> None:
    refusing = start_account(Settings(quotas={"L-1216C47A": 64}))
    refusing.deploy(cluster_template(**PLAN))
    precompile(refusing, tmp_path, "true", "--detach")
    assert await_failed(refusing, newest_job(refusing)).startswith("EC2 did not launch a host: ")
    await_no_host(refusing)
