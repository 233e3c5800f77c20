"""Disturbances in the middle of saves, on two booted nodes, in every layout of checkpoints that nodes know.

An attempt is disturbed when it has half saved its state in all layouts (tools/lab/saving.py). The step before is
complete in each layout then, and one of them is left for the next attempt to resume from.
"""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pytest

from tools.lab.cluster_jobs import CHECKPOINTS, LONGEST_LOG, OWN_BUCKET, ClusterJobs, write_job_file
from tools.lab.deployment import tag_value
from tools.lab.network import cable
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.pytorch import PYTHON, TORCH
from tools.lab.saving import LAYOUTS, NODES, State, state_after
from tools.lab.shell import run
from tools.lab.tests.test_jobs import give_spot_notice
from trainium_core.facts import facts

SAVING = REPOSITORY / "tools/lab/saving.py"
COMMAND = (
    f"RANK=$TRN_NODE_RANK WORLD_SIZE=$TRN_NODES MASTER_ADDR=$HEAD_NODE MASTER_PORT={facts()['rendezvous']['port']} "
    f"{PYTHON} {SAVING.name}"
)
VARIABLES = {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}

RESULTS = {"process killed": "failed", "cable lost": "node-lost", "spot notice": "interrupted", "stopped": "stopped"}
"""The result of an attempt by disturbance."""
RESUMED = {"process killed": "NxD", "cable lost": "DeepSpeed", "stopped": "distributed checkpoint"}
"""The layout that the next attempt resumes from, by disturbance. After a notice, it is that of the newest manifest."""
NEWEST = {"process killed": 1, "cable lost": 2, "spot notice": 4, "stopped": 5}
"""The newest step that is complete after a disturbance. After a notice, it is the one that was being saved."""
LAST_STEP = 6


@dataclass(frozen=True, kw_only=True)
class DisturbedSave:
    """An attempt that was disturbed in the middle of its saves.

    Attributes:
        result: Its result.
        newest: The newest step with a complete checkpoint when the attempt had ended, by layout.
    """

    result: str
    newest: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class DisturbedSaves:
    """A training whose attempts were disturbed in the middle of their saves.

    Attributes:
        saves: The disturbed saves by disturbance.
        resumed: The lines in which the attempts say from which checkpoint they start.
        manifests: How often nodes wrote the manifest of each checkpoint, by job and name.
        loaded: Step and states of all complete checkpoints.
        final: The states at the end.
    """

    saves: Mapping[str, DisturbedSave]
    resumed: Sequence[str]
    manifests: Mapping[tuple[str, str], int]
    loaded: Sequence[tuple[int, list[State]]]
    final: list[State]


@pytest.fixture(scope="module")
def disturbed(cluster: ClusterJobs) -> DisturbedSaves:
    """One training with all disturbances."""
    cluster.await_verified()
    source = RUN / "saves"
    source.mkdir()
    shutil.copy(SAVING, source)
    before = len(cluster.lab.proxy.requests)
    saves: dict[str, DisturbedSave] = {}
    removed: dict[str, bytes] = {}
    resumed: list[str] = []
    jobs: list[str] = []

    def start(name: str, steps: int, **keys: object) -> str:
        if jobs:
            cluster.end_of(jobs[-1])
            keys["resume"] = jobs[-1]
        keys = {"nodes": NODES, "checkpoint_seconds": 1, "environment": VARIABLES, **keys}
        file = write_job_file(name, f"{COMMAND} {steps}", source, **keys)
        jobs.append(json.loads(cluster.trn("run", "--detach", "--json", str(file)))["job"]["id"])
        return jobs[-1]

    def newest(job: str) -> dict[str, int]:
        names = [key.rpartition("/")[2].removesuffix(".json") for key in cluster.checkpoints(job)]
        found = {
            layout: [step for step in range(LAST_STEP + 1) if name.format(step) in names]
            for layout, name in LAYOUTS.items()
        }
        return {layout: max(steps, default=0) for layout, steps in found.items()}

    def disturb(what: str, act: Callable[[], object], *, job: str, attempt: int, saved: int) -> None:
        def is_half_saved() -> bool:
            assert not cluster.content(job, f"attempts/{attempt}/end.json"), cluster.log(job, attempt, 0)[-LONGEST_LOG:]
            logs = [cluster.log(job, attempt, node) for node in range(NODES)]
            return all(f"saves half of step {saved + 1}\n" in log for log in logs)

        cluster.wait_for("saves in the middle", is_half_saved)
        cluster.wait_for("complete checkpoints", lambda: set(newest(job).values()) == {saved})
        for layout, name in LAYOUTS.items():
            key = f"{CHECKPOINTS}/{job}/checkpoints/{name.format(saved)}.json"
            if what in RESUMED and layout != RESUMED[what]:
                removed[key] = cluster.s3.get_object(Bucket=OWN_BUCKET, Key=key)["Body"].read()
                cluster.s3.delete_object(Bucket=OWN_BUCKET, Key=key)
        act()
        end = cluster.end_of(job, attempt)

        def steps() -> dict[str, int]:
            return {layout: max(saved, step) for layout, step in newest(job).items()}

        # After the end of the attempt, nodes still store what they have.
        cluster.wait_for("the last checkpoints", lambda: min(steps().values()) >= NEWEST[what])
        saves[what] = DisturbedSave(result=end["result"], newest=steps())
        resumed.extend(re.findall("starts after step .*", cluster.log(job, attempt, 0)))

    second = cluster.nodes[1]
    link = cable(second.instance.address)
    job = start("saves", LAST_STEP, retries=2, retry_on_exit_codes=[1, 137])
    disturb("process killed", lambda: second.execute("pkill", "-KILL", "-f", SAVING.name), job=job, attempt=1, saved=1)
    disturb("cable lost", lambda: run("ip", "link", "set", link, "down"), job=job, attempt=2, saved=2)
    run("ip", "link", "set", link, "up")
    disturb("spot notice", lambda: give_spot_notice(cluster, second), job=job, attempt=3, saved=3)
    instance = second.instance.instance_id
    cluster.wait_for("the controller's tag", lambda: tag_value(cluster.lab, instance, "trn:node") == "draining")
    cluster.lab.metadata.subjects[second.instance.address].notices.clear()
    cluster.await_verified()
    job = start("saves-again", LAST_STEP)
    disturb("stopped", lambda: cluster.trn("stop", job), job=job, attempt=1, saved=5)
    job = start("saves-to-the-end", LAST_STEP)
    assert cluster.end_of(job)["result"] == "succeeded"
    resumed.extend(re.findall("starts after step .*", cluster.log(job, 1, 0)))
    for key, manifest in removed.items():
        cluster.s3.put_object(Bucket=OWN_BUCKET, Key=key, Body=manifest)
    paths = [
        (request.path.split("/")[-3], unquote(request.path.split("/")[-1]).removesuffix(".json"))
        for request in cluster.lab.proxy.requests[before:]
        if (request.method, request.status) == ("PUT", 200) and re.search(r"/checkpoints/[^/]+\.json$", request.path)
    ]
    return DisturbedSaves(
        saves=saves,
        resumed=resumed,
        manifests=Counter(paths),
        loaded=list(loaded(cluster, jobs)),
        final=json.loads(cluster.object(job, "outputs/states.json") or "null"),
    )


def loaded(cluster: ClusterJobs, jobs: Sequence[str]) -> Iterator[tuple[int, list[State]]]:
    """Step and states of all complete checkpoints of jobs."""
    paths: list[str] = []
    for job in jobs:
        folder = RUN / f"checkpoints-{job}"
        cluster.trn("cp", f"{job}:checkpoints", str(folder))
        paths += [str(path) for path in folder.iterdir() if path.name != "latest"]
    out = subprocess.run([f"{TORCH}/bin/python", SAVING, "load", *paths], capture_output=True, text=True, check=True)
    yield from json.loads(out.stdout)


@pytest.mark.parametrize("what", RESULTS)
def test_no_half_saved_checkpoint_is_complete(disturbed: DisturbedSaves, what: str) -> None:
    assert disturbed.saves[what] == DisturbedSave(result=RESULTS[what], newest=dict.fromkeys(LAYOUTS, NEWEST[what]))


def test_attempts_resume_from_whole_checkpoints_of_several_layouts(disturbed: DisturbedSaves) -> None:
    expected = [
        f"starts after step {NEWEST[what]}, from {LAYOUTS[layout].format(NEWEST[what])}"
        for what, layout in RESUMED.items()
    ]
    first, killed, lost, noticed, stopped = disturbed.resumed
    assert first == "starts after step 0, from None"
    assert [killed, lost, stopped] == expected
    assert noticed.startswith("starts after step 4, ")


def test_each_checkpoint_is_declared_complete_once_and_has_the_undisturbed_state(disturbed: DisturbedSaves) -> None:
    assert set(disturbed.manifests.values()) == {1}
    assert len(disturbed.loaded) == LAST_STEP * len(LAYOUTS)
    for step, states in disturbed.loaded:
        assert states == state_after(step)


def test_training_with_disturbed_saves_ends_in_the_undisturbed_state(disturbed: DisturbedSaves) -> None:
    assert disturbed.final == state_after(LAST_STEP)
