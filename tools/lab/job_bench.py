"""python -m tools.lab tools.lab.job_bench: jobs of `trn run`, from the command on, against torchrun started by hand.

By hand means at the same moment on all nodes, with the code in place, faster than a person could.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from tools.lab.cluster_jobs import ClusterJobs, torchrun, training, write_job_file
from tools.lab.deployment import bootstrap, deploy, destroy
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import laboratory
from tools.lab.node import Node
from tools.lab.paths import REPOSITORY, RUN, SHOWN
from tools.lab.plans import MAX_NODES
from tools.lab.pytorch import with_torchrun
from tools.lab.stored_jobs import first_steps

RUNS = 5
AIM_SECONDS = 5
JOB_UID = 60800
SCRIPT = "empty.py"
FOLDER = "srv/by-hand"


def empty_by_command(cluster: ClusterJobs) -> float:
    """Seconds from the command to its exit."""
    file = write_job_file("empty", torchrun(SCRIPT), _empty_source(), environment={})
    # With compiled bytecode of its modules, as an installed command has.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command, started = cluster.command("run", str(file)), time.time()
    subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.time() - started


def empty_by_hand(cluster: ClusterJobs) -> float:
    started, _ = _by_hand(cluster, _empty_source(), torchrun(SCRIPT), {})
    return time.time() - started


def first_step_by_command(cluster: ClusterJobs) -> float:
    """Seconds from the command to the first step on every rank."""
    started = time.time()
    job = cluster.start("first-step", paced=False)
    assert cluster.end_of(job)["result"] == "succeeded"
    return max(cluster.first_steps(job, 1).values()) - started


def first_step_by_hand(cluster: ClusterJobs) -> float:
    started, log = _by_hand(cluster, cluster.source, *training(paced=False))
    return max(first_steps(log).values()) - started


def _empty_source() -> Path:
    source = RUN / "empty"
    source.mkdir(exist_ok=True)
    (source / SCRIPT).write_text("")
    return source


def _by_hand(cluster: ClusterJobs, source: Path, command: str, environment: Mapping[str, str]) -> tuple[float, str]:
    """Run a command on all nodes at once. Return the start in seconds since 1970, and what the nodes printed."""
    for node in cluster.nodes:
        folder = node.root / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        shutil.chown(folder, JOB_UID, JOB_UID)
    # Inside the node's control group, so that the processes get its share of the CPUs.
    shell = (
        "systemd-run",
        "--quiet",
        "--pipe",
        "--wait",
        "--collect",
        f"--uid={JOB_UID}",
        "env",
        "--ignore-environment",
    )
    variables = [f"{name}={value}" for name, value in environment.items()]

    def train(node: Node) -> str:
        return node.execute(*shell, *variables, "bash", "-lc", f"cd /{FOLDER} && {command}")

    started = time.time()
    with ThreadPoolExecutor(len(cluster.nodes)) as side_by_side:
        return started, "".join(side_by_side.map(train, cluster.nodes))


def compare(
    cluster: ClusterJobs, what: str, command: Callable[[ClusterJobs], float], by_hand: Callable[[ClusterJobs], float]
) -> str:
    """Run the two alternately, so that other load affects both. The first pair fills caches and does not count."""
    pairs = [(command(cluster), by_hand(cluster)) for _ in range(RUNS + 1)][1:]
    for ours, theirs in pairs:
        print(f"  {what}: trn run {ours:.1f} s, torchrun by hand {theirs:.1f} s")
    ours, theirs = (median(times) for times in zip(*pairs, strict=True))
    more = f"{ours - theirs:.1f} s more, {ours / theirs:.1f} x"
    return f"{what} on {cluster.count} nodes: {ours:.1f} s, by hand {theirs:.1f} s: {more}"


def measure(cluster: ClusterJobs) -> str:
    empty = compare(cluster, "an empty job", empty_by_command, empty_by_hand)
    first_step = compare(cluster, "a first step", first_step_by_command, first_step_by_hand)
    return f"{empty} (aim {AIM_SECONDS} s); {first_step}"


def main() -> None:
    with laboratory() as lab:
        run = bootstrap()
        assert run.code == 0, run.errors
        with Hypervisor(lab) as hypervisor:
            hypervisor.prepare(with_torchrun)
            settings = {"nodes": str(MAX_NODES)}
            run = deploy(**settings)
            assert run.code == 0, run.errors
            shown = measure(ClusterJobs(lab, hypervisor, settings))
            destroy()
    SHOWN.write_text(shown)
    print(shown)


if __name__ == "__main__":
    main()
