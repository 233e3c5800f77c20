"""The coordination of the test over all nodes through S3, and the computation of each node."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import PACKAGES, VerifiedNode
from trainium_userdata.node.trn_node import all_reduce, cluster, files, internode_rounds, self_test
from trainium_userdata.node.trn_node.cluster import InternodeProcess, InternodeResult
from trainium_userdata.node.trn_node.imds import Imds
from trainium_userdata.node.trn_node.internode import (
    ASSEMBLY,
    NO_RESULT,
    READY,
    RIGHT,
    TOGETHER,
    WRONG,
    RoundOutcome,
    Verdict,
)
from trainium_userdata.node.trn_node.internode_rounds import Rounds, Task, check, patiently, run_step
from trainium_userdata.node.trn_node.s3 import S3
from trainium_wire.cache_place import NATIVE_SETTINGS, native_folders

NODES = {"i-0": "127.0.0.2", "i-1": "127.0.0.3", INSTANCE_ID: "127.0.0.4"}
LIMITS = {"assembly_seconds": 60, "step_seconds": 60, "grace_seconds": 0, "all_seconds": 180, "slow": 0.8}
PLAN = plan_for("trn1.32xlarge")


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("TRN_HTTP_RETRIES", "0")
    monkeypatch.setattr(internode_rounds, "PAUSE_SECONDS", 0.01)
    for name, value in aws.loopback_environment.items():
        monkeypatch.setenv(name, value)
    files.write(files.LOCATIONS, f"TRN_REGION={aws.region}\nTRN_REPORT_URL=s3://records/nodes\n")


def task(instance_id: str, version: str = "v1") -> Task:
    return Task(version, instance_id, NODES, "s3://records")


def run_test(outcome: Callable[[str, Sequence[str], int], RoundOutcome], **limits: float) -> list[Verdict]:
    """Let every node take part. Returns the judgement that each node reaches."""

    def meet(instance_id: str) -> Verdict:
        imds = Imds(retries=0)
        rounds = Rounds(S3(imds, retries=0), task(instance_id), {**LIMITS, **limits}, partial(outcome, instance_id))
        return rounds.lead() if instance_id == "i-0" else rounds.follow()

    with ThreadPoolExecutor(len(NODES)) as side_by_side:
        return list(side_by_side.map(meet, NODES))


def sound(_instance_id: str, _group: Sequence[str], step: int) -> RoundOutcome:
    return RoundOutcome(READY) if step == ASSEMBLY else RoundOutcome(RIGHT, bandwidth=80)


def test_all_nodes_reach_the_same_judgement():
    found = run_test(sound)
    assert {judgement.found for judgement in found} == {"correct over 3 nodes, 80.0 GB/s at 256 MiB"}


def test_only_the_faulty_node_learns_that_it_failed():
    def outcome(_instance_id: str, group: Sequence[str], step: int) -> RoundOutcome:
        if step == ASSEMBLY:
            return RoundOutcome(READY)
        return RoundOutcome(NO_RESULT, "no packet came") if "i-1" in group and len(group) > 1 else RoundOutcome(RIGHT)

    checks = {
        instance_id: check(found, task(instance_id))
        for instance_id, found in zip(NODES, run_test(outcome), strict=True)
    }
    assert {instance_id: each.ok for instance_id, each in checks.items()} == {
        "i-0": True,
        "i-1": False,
        INSTANCE_ID: True,
    }
    assert checks["i-1"].problem == (
        f"all-reduce over nodes: no correct result with {INSTANCE_ID}, i-0, which have one with other nodes: "
        "no packet came"
    )
    assert checks["i-0"].warning == ""


def test_restarted_leader_repeats_no_test(aws: AwsStandIn):
    run_test(sound)
    before = dict(aws.records)

    def fails(_instance_id: str, _group: Sequence[str], _step: int) -> RoundOutcome:
        raise AssertionError("tested twice")

    assert run_test(fails)[0].tested
    assert aws.records == before


def test_judgement_with_other_types_is_refused_or_read_as_text(aws: AwsStandIn):
    """Any node can write the judgement, and root reads it."""
    forged = {"found": 5, "tested": "yes", "faults": {"i-1": ["x"]}, "wrong": [7], "warnings": {}}
    aws.records["records/internode/v1/step.json"] = json.dumps({"judgement": forged})
    read = Rounds(S3(), task("i-1"), LIMITS, lambda _group, _step: RoundOutcome(READY)).follow()
    assert read == Verdict("5", faults={"i-1": "['x']"}, wrong=["7"])
    aws.records["records/internode/v1/step.json"] = json.dumps({"judgement": {**forged, "faults": "all"}})
    with pytest.raises(AttributeError):
        Rounds(S3(), task("i-1"), LIMITS, lambda _group, _step: RoundOutcome(READY)).follow()


def test_restarted_node_keeps_its_results(aws: AwsStandIn):
    shown = {"state": RIGHT, "detail": "", "bandwidth": 1.0}
    aws.records[f"records/internode/v1/{TOGETHER}/i-1.json"] = json.dumps(shown)

    def outcome(instance_id: str, group: Sequence[str], step: int) -> RoundOutcome:
        return (
            RoundOutcome(NO_RESULT, "too late")
            if step == TOGETHER and instance_id == "i-1"
            else sound(instance_id, group, step)
        )

    assert run_test(outcome)[0].tested


def test_node_without_leader_waits_within_its_limit():
    rounds = Rounds(S3(), task("i-1"), {**LIMITS, "assembly_seconds": 0.05}, lambda _group, _step: RoundOutcome(READY))
    assert rounds.follow().found == "not tested: i-0, which leads the test, wrote nothing within 0.05 seconds"


def test_test_continues_after_s3_was_unavailable():
    answers = iter(
        [OSError("S3 is unavailable for GET: 503"), TimeoutError("no answer"), Verdict("right", tested=True)]
    )

    def take_part() -> Verdict:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert patiently(take_part, 60) == Verdict("right", tested=True)


def test_test_ends_within_its_time_without_s3():
    def take_part() -> Verdict:
        raise OSError("S3 is unavailable for GET: 503")

    assert patiently(take_part, 0).found == "not tested: S3 is unavailable for GET: 503"


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> VerifiedNode:
    found = VerifiedNode(tmp_path, PLAN, aws)
    monkeypatch.setenv("PATH", f"{found.programs}:{os.environ['PATH']}")
    return found


def torchrun(node: VerifiedNode, body: str) -> None:
    program = node.root / "opt/aws_neuronx_venv_pytorch_2_9/bin/torchrun"
    program.write_text(f'#!/bin/bash\necho "$@" >{node.root}/torchrun.arguments\n{body}\n')
    program.chmod(0o755)


def shared(node: VerifiedNode, step: int = TOGETHER) -> RoundOutcome:
    return run_step(node.expectations, task(INSTANCE_ID), list(NODES), step)


ANSWERS = f"for core in {{1..32}}; do echo '{all_reduce.MARK}\"\"'; done; echo '{all_reduce.BANDWIDTH_MARK}77.5'"


def test_process_of_native_pytorch_has_the_settings_of_jobs(node: VerifiedNode):
    torchrun(node, f"env >{node.root}/torchrun.environment; {ANSWERS}")
    shared(node)
    folder = node.root / self_test.CACHE
    wanted = {**native_folders(str(folder)), **NATIVE_SETTINGS}
    assert {f"{name}={value}" for name, value in wanted.items()} <= set(node.read("torchrun.environment").splitlines())


def test_process_is_started_like_that_of_a_job(node: VerifiedNode):
    torchrun(node, ANSWERS)
    assert shared(node) == RoundOutcome(RIGHT, bandwidth=77.5)
    *options, script, stack = node.read("torchrun.arguments").split()
    assert options == [
        "--nnodes=3",
        "--nproc_per_node=32",
        "--node_rank=2",
        "--master_addr=127.0.0.2",
        "--master_port=41000",
    ]
    assert (Path(script).name, stack) == ("all_reduce.py", "xla")


def test_wrong_sums_of_any_process_are_wrong_numbers(node: VerifiedNode):
    torchrun(node, f"{ANSWERS}; echo '{all_reduce.MARK}\"the sums are not those of the CPU\"'; exit 1")
    assert shared(node) == RoundOutcome(WRONG, "the sums are not those of the CPU on 1 of 32 cores")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("echo 'nccl init failed' >&2; exit 1", "/torchrun fails with exit code 1: nccl init failed (0 of 32 cores"),
        (f"echo '{all_reduce.MARK}\"\"'", "torchrun exits with 0 (1 of 32 cores computed a sum)"),
    ],
)
def test_step_without_all_sums_has_no_result(node: VerifiedNode, body: str, detail: str):
    torchrun(node, body)
    found = shared(node)
    assert found.state == NO_RESULT
    assert found.detail.startswith(detail)


def test_processes_that_crash_after_correct_sums_pass(node: VerifiedNode):
    torchrun(node, f"{ANSWERS}; exit 1")
    assert shared(node).state == RIGHT


def test_process_ends_after_its_time_limit(node: VerifiedNode):
    torchrun(node, "sleep 60")
    node.expect(internode={**LIMITS, "step_seconds": 0.2})
    assert "does not end within 0.2 seconds" in shared(node).detail


def test_node_in_use_takes_no_part(node: VerifiedNode, monkeypatch: pytest.MonkeyPatch):
    job = [{"neuron_device": 0, "neuron_processes": [{"pid": 42, "command": "python train.py"}]}]
    node.neuron_ls(job)
    monkeypatch.setenv("PATH", f"{node.programs}:{os.environ['PATH']}")
    assert shared(node, ASSEMBLY) == RoundOutcome("unable", "NeuronCores are in use by python train.py (42)")


def test_first_outcome_has_the_bandwidth_within_the_node(node: VerifiedNode, monkeypatch: pytest.MonkeyPatch):
    node.run("verify")
    monkeypatch.setenv("PATH", f"{node.programs}:{os.environ['PATH']}")
    assert shared(node, ASSEMBLY) == RoundOutcome(READY, bandwidth=91.24)


def test_untested_membership_is_a_warning():
    found = check(Verdict("not tested: no outcome yet from i-1"), task("i-0"))
    assert (found.ok, found.warning) == (True, "all-reduce over nodes: not tested: no outcome yet from i-1")


@pytest.mark.parametrize(("wrong", "ok"), [([], True), (["i-1"], False)], ids=["no result", "wrong numbers"])
def test_observed_node_fails_only_by_wrong_numbers(wrong: list[str], ok: bool):
    judgement = Verdict("not correct because of i-1", faults={"i-1": "it hangs"}, wrong=wrong)
    found = check(judgement, task("i-1")).counted({"verification": "observe", "suppress_checks": []})
    assert (found.ok, bool(found.warning)) == (ok, ok)


def test_separate_process_reports_the_end_of_the_test(node: VerifiedNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGES)
    node.aws.s3_refuses = True
    process = InternodeProcess()
    assert process.poll(task(INSTANCE_ID)) is None
    assert process.process
    process.process.wait()
    found = process.poll(task(INSTANCE_ID))
    assert isinstance(found, InternodeResult)
    assert found.check["found"].startswith("not tested: S3 refuses GET")


def test_process_crash_is_reported(node: VerifiedNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(node.root))
    process = InternodeProcess()
    assert process.poll(task(INSTANCE_ID)) is None
    assert process.process
    process.process.wait()
    found = process.poll(task(INSTANCE_ID))
    assert found
    assert "the process ended with exit code 1" in found.check["warning"]


def test_process_that_misses_a_signal_gets_another(node: VerifiedNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGES)
    monkeypatch.setattr(cluster, "TERMINATE_SECONDS", 0.1)
    node.aws.s3_refuses = True
    process = InternodeProcess()
    before = process.process = subprocess.Popen([sys.executable, "-c", MISSES_A_SIGNAL], stdout=subprocess.PIPE)
    assert before.stdout
    assert before.stdout.readline()
    process.poll(task(INSTANCE_ID))
    assert before.returncode == 9
    process.process.wait()


MISSES_A_SIGNAL = """import os, signal
signals = []
def end(*_):
    if signals:
        os._exit(9)
    signals.append(1)
signal.signal(signal.SIGTERM, end)
print(flush=True)
while True:
    signal.pause()
"""

MODULES = {
    "torch/__init__.py": """
import os
float32 = "float32"
class Tensor:
    def __init__(self, rows): self.rows = rows
    def repeat(self, *tiles): return self
    def to(self, device): return self
    def cpu(self): return self
    def clone(self): return Tensor(self.rows)
    def __getitem__(self, row): return Tensor(self.rows[row])
    def item(self): return self.rows
tensor = lambda rows, dtype: Tensor(rows)
equal = lambda found, expected: found.rows == expected.rows
class cuda:
    set_device = staticmethod(lambda device: {"cuda:0": None}[device])
""",
    "torch/distributed.py": """
import os
from torch import Tensor
backends = []
init_process_group = lambda backend, init_method=None: backends.append((backend, init_method))
get_rank = lambda: int(os.environ["RANK"])
get_world_size = lambda: int(os.environ["WORLD_SIZE"])
def summed(rows):
    place = lambda value: value - 1 - get_rank()
    values = {value for row in rows for value in row}
    sums = {value: sum((place(value) + rank) % 127 + 1 for rank in range(get_world_size())) for value in values}
    return [[sums[value] + int(os.environ.get("FAULT", 0)) for value in row] for row in rows]
def all_reduce(tensor):
    tensor.rows = summed(tensor.rows)
""",
    "torch_neuronx.py": "",
    "torch_xla/__init__.py": "",
    "torch_xla/distributed/__init__.py": "",
    "torch_xla/distributed/xla_backend.py": "",
    "torch_xla/core/__init__.py": "",
    "torch_xla/runtime.py": """
import os
from torch.distributed import backends
def world_size():
    assert backends == [("xla", "xla://")]
    return int(os.environ.get("RUNTIME_SIZE", os.environ["WORLD_SIZE"]))
""",
    "torch_xla/core/xla_model.py": """
from torch import Tensor
from torch.distributed import summed
import time
xla_device = lambda: "xla:0"
wait_device_ops = lambda: None
compiled = []
def mark_step():
    if not compiled:
        time.sleep(2)
        compiled.append(1)
all_reduce = lambda op, tensor: Tensor(summed(tensor.rows))
""",
}


def run_all_reduce(folder: Path, stack: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    for name, text in MODULES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    ranks = {"RANK": "2", "WORLD_SIZE": "130", "LOCAL_RANK": "0", "PYTHONPATH": str(folder), **environment}
    command = [sys.executable, all_reduce.__file__, stack]
    return subprocess.run(command, env=ranks, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("fault", [0, 1])
@pytest.mark.parametrize("stack", ["xla", "native", "cuda"])
def test_sums_of_each_stack_are_compared_with_those_of_the_cpu(tmp_path: Path, stack: str, fault: int):
    ran = run_all_reduce(tmp_path, stack, FAULT=str(fault))
    shown, bandwidth = ran.stdout.splitlines()
    wrong = "the sums are not those of the CPU" if fault else ""
    assert shown == f"{all_reduce.MARK}{json.dumps(wrong)}"
    found = float(bandwidth.removeprefix(all_reduce.BANDWIDTH_MARK))
    # If the compilation of two seconds were timed, the bandwidth would be lower.
    assert found > 0.268 / 2 * all_reduce.TIMES * 2


def test_processes_missing_in_the_runtime_have_no_result(tmp_path: Path):
    ran = run_all_reduce(tmp_path, "xla", RUNTIME_SIZE="1")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "the runtime has 1 processes, torchrun 130\n"


def test_gpu_node_uses_nccl_over_efa(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch):
    node = VerifiedNode(tmp_path, plan_for("p5.48xlarge"), aws)
    monkeypatch.setenv("PATH", f"{node.programs}:{os.environ['PATH']}")
    program = node.root / "opt/pytorch/bin/torchrun"
    answers = ANSWERS.replace("1..32", "1..8")
    program.write_text(f'#!/bin/bash\necho "$@" >{node.root}/arguments; env >{node.root}/environment\n{answers}\n')
    program.chmod(0o755)
    assert shared(node) == RoundOutcome(RIGHT, bandwidth=77.5)
    assert node.read("arguments").split()[-1] == "cuda"
    assert {"FI_PROVIDER=efa", "NCCL_SOCKET_IFNAME=^docker,lo,veth"} <= {*node.read("environment").splitlines()}
