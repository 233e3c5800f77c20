"""`trn-node internode`: this node's part in the all-reduce test over all nodes, which rank 0 leads.

The nodes coordinate through objects in S3, in a folder for the membership's version: rank 0 writes the step, and each
node its outcome. nccom-test is not used, because across nodes it starts its processes only with ssh or Slurm (AWS
Neuron SDK documentation, nccom-test.rst). Each node starts its own processes with torchrun and static ranks, like a
job.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trainium_wire.keys import INTERNODE_PREFIX
from trainium_wire.logs import file_logger

from . import files, gpu, record, self_test, verify
from .all_reduce import BANDWIDTH_MARK, MARK
from .check import Check
from .internode import ASSEMBLY, NAME, NO_RESULT, READY, RIGHT, UNABLE, WRONG, RoundOutcome, Verdict, groups, judge
from .job_user import JOB_USER, make_job_user_folder
from .programs import environment, one_line, run
from .s3 import S3, S3Error

TASK, RESULT = "run/trn/internode-task.json", "run/trn/internode.json"
PAUSE_SECONDS = 2
_LOGGER = file_logger("trn_node")
STACKS = ("xla", "native", self_test.CUDA)
StepRunner = Callable[[Sequence[str], int], RoundOutcome]
"""The outcome of this node in a step with a group of nodes."""


class Task(NamedTuple):
    """The test of one membership.

    Attributes:
        version: Version of the membership.
        instance_id: This node.
        nodes: Addresses by instance ID, rank 0 first.
        folder: S3 URL of the cluster's folder.
    """

    version: str
    instance_id: str
    nodes: dict[str, str]
    folder: str

    @classmethod
    def read(cls) -> Task:
        """Read the file TASK. Raises ValueError, LookupError or TypeError if it is missing or invalid."""
        return cls(**json.loads(files.read(TASK)))


class Rounds:
    """The rounds of the test of one membership.

    Args:
        s3: Requests to S3.
        task: The membership.
        limits: The plan's limits: times in seconds, and `slow` of `judge`.
        run_step: Runs a step on this node.
    """

    def __init__(self, s3: S3, task: Task, limits: Mapping[str, float], run_step: StepRunner) -> None:
        self._s3, self._task, self._limits, self._run_step = s3, task, limits, run_step
        self._url = f"{task.folder}/{INTERNODE_PREFIX}/{task.version}"
        self._names = list(task.nodes)
        self._ends = time.monotonic() + limits["all_seconds"]

    def lead(self) -> Verdict:
        """Start the steps and judge the outcomes of all nodes, unless there is a judgement. Raises OSError if a request
        to S3 fails."""
        stored = self._get("step")
        if stored and "judgement" in stored:
            return Verdict.from_json(stored["judgement"])
        history: list[dict[str, RoundOutcome]] = []
        while True:
            judgement = judge(self._names, history, slow=self._limits["slow"])
            if not judgement and time.monotonic() > self._ends:
                judgement = Verdict(
                    f"not tested: no result within {self._limits['all_seconds']:g} seconds, after {len(history)} steps"
                )
            if judgement:
                self._put("step", {"judgement": judgement._asdict()})
                return judgement
            step = len(history)
            self._put("step", {"step": step})
            members = [name for group in groups(self._names, step) for name in group]
            longest = "assembly_seconds" if step == ASSEMBLY else "step_seconds"
            ends = time.monotonic() + self._limits[longest] + self._limits["grace_seconds"]
            own = {self._task.instance_id: self._outcome(step)} if self._task.instance_id in members else {}
            history.append({**own, **self._outcomes(step, [name for name in members if name not in own], ends)})

    def follow(self) -> Verdict:
        """Take part in the steps of rank 0. Raises OSError if a request to S3 fails."""
        done, last_step_at, timeout = -1, time.monotonic(), self._limits["assembly_seconds"]
        while time.monotonic() < last_step_at + timeout:
            stored = self._get("step")
            if stored and "judgement" in stored:
                return Verdict.from_json(stored["judgement"])
            step = int(stored["step"]) if stored else -1
            if step > done:
                self._outcome(step)
                done, last_step_at = step, time.monotonic()
                timeout = self._limits["step_seconds"] + 2 * self._limits["grace_seconds"]
            time.sleep(PAUSE_SECONDS)
        return Verdict(f"not tested: {self._names[0]}, which leads the test, wrote nothing within {timeout:g} seconds")

    def _outcome(self, step: int) -> RoundOutcome:
        """This node's outcome. A completed step is not repeated."""
        place = f"{step}/{self._task.instance_id}"
        if stored := self._get(place):
            return RoundOutcome.from_json(stored)
        group = next((group for group in groups(self._names, step) if self._task.instance_id in group), None)
        if group is None:
            return RoundOutcome(READY)
        outcome = self._run_step(group, step)
        _LOGGER.info("step %d with %s: %s %s", step, ", ".join(group), outcome.state, outcome.detail)
        self._put(place, outcome._asdict())
        return outcome

    def _outcomes(self, step: int, names: Sequence[str], ends: float) -> dict[str, RoundOutcome]:
        """The outcomes of other nodes that arrive until `ends`."""
        found: dict[str, RoundOutcome] = {}
        while True:
            for name in names:
                if name not in found and (stored := self._get(f"{step}/{name}")):
                    found[name] = RoundOutcome.from_json(stored)
            if len(found) == len(names) or time.monotonic() > ends:
                return found
            time.sleep(PAUSE_SECONDS)

    def _put(self, name: str, content: Any) -> None:
        self._s3.put(f"{self._url}/{name}.json", json.dumps(content).encode())

    def _get(self, name: str) -> Any:
        found = self._s3.get(f"{self._url}/{name}.json")
        return json.loads(found[0]) if found else None


def run_step(plan: dict[str, Any], task: Task, group: Sequence[str], step: int) -> RoundOutcome:
    """The outcome of this node: in the first step, whether it can take part; then that of an all-reduce with the
    group."""
    python = self_test.framework_python(plan)
    if step == ASSEMBLY:
        if held := verify.users(plan):
            return RoundOutcome(UNABLE, verify.in_use(plan, held))
        if not python or python[0] not in STACKS:
            return RoundOutcome(UNABLE, "PyTorch is not installed")
        checks = (record.read() or {}).get("checks", [])
        return RoundOutcome(READY, bandwidth=next((c["bandwidth"] for c in checks if c.get("bandwidth")), None))
    if not python:
        return RoundOutcome(NO_RESULT, "PyTorch is not installed")
    make_job_user_folder(files.path(self_test.CACHE))
    stack, interpreter = python
    cores = plan.get("gpus") or plan["neuron_cores"]
    lnc, cache = plan["logical_neuroncore_config"], str(files.path(self_test.CACHE))
    changes = {
        "PATH": os.pathsep.join((str(interpreter.parent), environment()["PATH"])),
        **self_test.compile_settings(cache),
        "FI_PROVIDER": "efa",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        **(gpu.NETWORK if plan.get("gpus") else {}),
        **({"NEURON_LOGICAL_NC_CONFIG": str(lnc)} if lnc else {}),
    }
    ran = run(
        str(interpreter.with_name("torchrun")),
        f"--nnodes={len(group)}",
        f"--nproc_per_node={cores}",
        f"--node_rank={group.index(task.instance_id)}",
        f"--master_addr={task.nodes[group[0]]}",
        f"--master_port={plan['rendezvous_port']}",
        str(Path(__file__).with_name("all_reduce.py")),
        stack,
        seconds=plan["internode"]["step_seconds"],
        changes=changes,
        folder=cache,
        user=JOB_USER,
    )
    unit = "GPUs" if plan.get("gpus") else "cores"
    stored = [line.partition(MARK)[2] for line in ran.out.splitlines() if MARK in line]
    wrong = [text for line in stored if (text := str(json.JSONDecoder().raw_decode(line)[0]))]
    if wrong:
        return RoundOutcome(WRONG, f"{wrong[0]} on {len(wrong)} of {cores} {unit}")
    if len(stored) < cores:
        error = ran.error.replace(str(interpreter.parent), "") or "torchrun exits with 0"
        return RoundOutcome(NO_RESULT, one_line(f"{error} ({len(stored)} of {cores} {unit} computed a sum)"))
    speeds = [line.partition(BANDWIDTH_MARK)[2] for line in ran.out.splitlines() if BANDWIDTH_MARK in line]
    return RoundOutcome(RIGHT, bandwidth=float(speeds[0]) if speeds else None)


def check(judgement: Verdict, task: Task) -> Check:
    """The check of this node."""
    expected = f"a correct all-reduce over {len(task.nodes)} nodes"
    fault = judgement.faults.get(task.instance_id)
    if fault:
        problem = f"all-reduce over nodes: {fault}"
        return Check(NAME, expected, judgement.found, False, problem, wrong_numbers=task.instance_id in judgement.wrong)
    # No warning if another node is at fault: it is replaced, and the new membership is tested.
    settled = judgement.tested or bool(judgement.faults)
    warnings = [
        "" if settled else f"all-reduce over nodes: {judgement.found}",
        judgement.warnings.get(task.instance_id, ""),
    ]
    return Check(NAME, expected, judgement.found, True, warning="; ".join(filter(None, warnings)))


def patiently(take_part: Callable[[], Verdict], seconds: float) -> Verdict:
    """The judgement. While S3 is unavailable, the test continues where it stopped, at most this number of seconds."""
    ends = time.monotonic() + seconds
    while True:
        try:
            return take_part()
        except Exception as error:
            _LOGGER.error("%s: %s", type(error).__name__, error)
            refused = not isinstance(error, OSError) or (isinstance(error, S3Error) and error.is_final)
            if refused or time.monotonic() > ends:
                return Verdict(f"not tested: {one_line(str(error))}")
        time.sleep(PAUSE_SECONDS)


def main() -> None:
    """Take part in the test of TASK, and write RESULT."""
    task, plan = Task.read(), files.plan()
    rounds = Rounds(S3(), task, plan["internode"], lambda group, step: run_step(plan, task, group, step))
    take_part = rounds.lead if next(iter(task.nodes)) == task.instance_id else rounds.follow
    judgement = patiently(take_part, plan["internode"]["all_seconds"])
    _LOGGER.info("%s: %s", NAME, judgement.found)
    found = check(judgement, task).counted(plan)
    result = {"version": task.version, "check": found.to_json(), "problem": found.problem}
    files.write(RESULT, json.dumps(result))
