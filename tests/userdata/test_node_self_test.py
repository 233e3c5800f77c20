"""The numeric self-test: its real script, run by a Python with tiny frameworks in place of the real ones."""

from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.frameworks import jax_modules, native_modules, torch_modules
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import VerifiedNode
from trainium_userdata.node.trn_node import compute, self_test

PLAN = plan_for("trn2.3xlarge")
CORES = PLAN.neuron_cores_per_node
FAULTS = [
    ("zeros", "core 2 returns zeros where the CPU returns "),
    ("NaN", "core 2 returns NaN where the CPU returns "),
    ("one number", "; 1 of 1024 numbers are wrong"),
    ("shape", "core 2 returns 992 numbers where the CPU returns 1024"),
    ("crash", "ZeroDivisionError: division by zero"),
]


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    return VerifiedNode(tmp_path, PLAN, aws)


@pytest.fixture
def jax_node(node: VerifiedNode) -> VerifiedNode:
    node.expect(framework="jax", frameworks={"jax": "jax"})
    return node


@pytest.fixture
def native_node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    """A node of an image with unknown frameworks, on which PyTorch/XLA crashes."""
    plan = plan_for("trn2.3xlarge", ami="ami-0123456789abcdef0")
    node = VerifiedNode(tmp_path, plan, aws)
    node.framework("pytorch", "2_9", modules=torch_modules(fault="crash"))
    return node


def self_tested(node: VerifiedNode) -> str:
    """The problems in the record after the self-test."""
    outcome = node.run("verify")
    assert outcome.record, outcome.output
    assert [check.name for check in outcome.record.checks if not check.ok] in ([], ["self-test"]), outcome.output
    return outcome.record.reason


def test_modules_that_a_job_left_in_the_folder_of_the_test_are_not_imported(native_node: VerifiedNode):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules())
    folder = native_node.root / self_test.CACHE
    folder.mkdir(parents=True)
    (folder / "json.py").write_text(f"open({str(native_node.root / 'imported')!r}, 'w')\n")
    assert self_tested(native_node) == ""
    assert not (native_node.root / "imported").exists()


def test_native_pytorch_is_verified_and_preferred_to_xla_on_trainium2(native_node: VerifiedNode):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules())
    outcome = native_node.run("verify")
    assert outcome.record
    assert outcome.record.state == "verified", outcome.record.reason
    assert outcome.check("self-test").found == "4 of 4 cores, with aws_neuronx_venv_torch_neuronx_2_14_0"
    assert native_node.run("framework").output.endswith("/opt/aws_neuronx_venv_torch_neuronx_2_14_0\n")


def test_core_with_wrong_results_under_native_pytorch_is_named(native_node: VerifiedNode):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules(fault="zeros", core=2))
    assert "core 2 returns zeros" in self_tested(native_node)


def test_native_self_test_has_a_separate_lock_folder(native_node: VerifiedNode):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules())
    assert self_tested(native_node) == ""
    (lock,) = (native_node.root / self_test.CACHE / ".local/locks").iterdir()
    assert (native_node.root / self_test.CACHE / lock.name[:2] / lock.name[2:4] / f"{lock.stem}.neff").exists()


def test_failed_native_device_is_not_hidden_by_the_cpu(native_node: VerifiedNode):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules(fault="device"))
    assert "ZeroDivisionError: division by zero" in self_tested(native_node)


def test_native_pytorch_without_a_device_is_reported(native_node: VerifiedNode):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules(device="cpu"))
    assert self_tested(native_node) == "each of cores 0-3 computes on cpu, not on a NeuronCore"


@pytest.mark.parametrize(("fault", "sentence"), FAULTS)
def test_core_with_wrong_results_under_pytorch_is_named(node: VerifiedNode, fault: str, sentence: str):
    node.framework("pytorch", "2_9", modules=torch_modules(fault=fault, core=2))
    reason = self_tested(node)
    assert reason.startswith("core 2 ")
    assert sentence in reason


def test_core_with_wrong_results_under_jax_is_named(jax_node: VerifiedNode):
    jax_node.framework("jax", "0_9", modules=jax_modules(cores=CORES, fault="zeros", core=2))
    assert self_tested(jax_node).startswith("core 2 returns zeros")


def test_core_at_which_jax_crashes_is_named(jax_node: VerifiedNode):
    jax_node.framework("jax", "0_9", modules=jax_modules(cores=CORES, fault="crash", core=2))
    reason = self_tested(jax_node)
    assert reason.startswith("core 2 is not verified: the computation fails with exit code 1: ")
    assert reason.endswith("; core 3 was not reached")


def test_cores_with_the_same_fault_are_reported_together(node: VerifiedNode):
    node.framework("pytorch", "2_9", modules=torch_modules(platform="CPU"))
    assert self_tested(node) == "each of cores 0-3 computes on CPU, not on a NeuronCore"


def test_different_faults_of_all_cores_fit_into_the_record(node: VerifiedNode):
    modules = torch_modules()
    modules["torch/__init__.py"] += "import os, sys\nsys.exit('NRT of ' + os.environ['NEURON_RT_VISIBLE_CORES'])\n"
    node.framework("pytorch", "2_9", modules=modules)
    fails = "core {0} is not verified: the computation fails with exit code 1: NRT of {0}; "
    assert self_tested(node) == "".join(map(fails.format, range(3))) + "core 3 is wrong in other ways"


@pytest.mark.parametrize(("shown", "sentence"), [(3, "core 3 is not shown by JAX"), (5, "jax shows 5 cores, not 4")])
def test_wrong_number_of_cores_is_reported(jax_node: VerifiedNode, shown: int, sentence: str):
    jax_node.framework("jax", "0_9", modules=jax_modules(cores=shown))
    assert self_tested(jax_node) == sentence


def test_hanging_core_is_given_up_and_named(node: VerifiedNode):
    node.framework("pytorch", "2_9", modules=torch_modules(fault="hang", core=2), core=2)
    node.expect(self_test=node.expectations["self_test"] | {"seconds": 3})
    assert self_tested(node).startswith("core 2 does not end within 3 seconds")


ATTEMPTS = """
import pathlib
core = int(os.environ.get("NEURON_RT_VISIBLE_CORES", 0))
log = pathlib.Path(os.environ["SEEN"])
with log.open("a") as out:
    out.write(f"{core} {os.environ['NEURON_RT_ROOT_COMM_ID']}\\n")
attempt = [line.split()[0] for line in log.read_text().splitlines()].count(str(core))
"""
"""Code that a framework runs first; it records the attempts and the root of each core."""


def attempts(node: VerifiedNode, modules: dict[str, str]) -> tuple[str, str, list[list[str]]]:
    """Why the node is not verified, what its self-test found, and the core and root of each process."""
    node.framework("pytorch", "2_9", modules=modules)
    seen = node.root / "seen"
    outcome = node.run("verify", SEEN=str(seen))
    assert outcome.record
    lines = [line.split() for line in seen.read_text().splitlines()]
    return outcome.record.reason, outcome.check("self-test").found, lines


@pytest.mark.parametrize("core", [0, 2])
def test_core_without_an_answer_is_retried_once_and_reported(node: VerifiedNode, core: int):
    modules = torch_modules()
    modules["torch/__init__.py"] += ATTEMPTS + f"assert attempt > 1 or core != {core}, 'NRT_LOAD_NOT_ENOUGH_NC'\n"
    reason, found, tried = attempts(node, modules)
    assert reason == ""
    assert found.endswith(f"; core {core} at the second attempt")
    assert sorted(int(core) for core, _ in tried) == sorted([*range(CORES), core])


def test_fault_of_all_cores_is_not_retried_with_each(node: VerifiedNode):
    modules = torch_modules()
    modules["torch/__init__.py"] += ATTEMPTS + "raise SystemExit('nrt_init failed')\n"
    reason, _, tried = attempts(node, modules)
    assert reason == "each of cores 0-3 is not verified: the computation fails with exit code 1: nrt_init failed"
    assert sorted(int(core) for core, _ in tried) == [0, 0, 1, 1, 2, 2, 3]


def test_wrong_numbers_are_not_retried(node: VerifiedNode):
    modules = torch_modules(fault="zeros", core=2)
    modules["torch/__init__.py"] += ATTEMPTS + "assert core != 3, 'NRT_LOAD_NOT_ENOUGH_NC'\n"
    reason, _, tried = attempts(node, modules)
    assert reason.startswith("core 2 returns zeros")
    assert len(tried) == CORES


def test_each_process_has_a_separate_core_root_and_cache(node: VerifiedNode):
    modules = torch_modules()
    modules["torch/__init__.py"] += (
        "import os\nenv = os.environ\nopen(env['SEEN'], 'a').write(env['NEURON_RT_VISIBLE_CORES'] + ' '"
        " + ' '.join(env[f'NEURON_{name}'] for name in"
        " ('LOGICAL_NC_CONFIG', 'RT_ROOT_COMM_ID', 'COMPILE_CACHE_URL')) + '\\n')\n"
        "print('noise', end='')\n"
    )
    node.framework("pytorch", "2_9", modules=modules)
    seen = node.root / "seen"
    assert node.run("verify", SEEN=str(seen), NEURON_COMPILE_CACHE_URL="s3://cluster-cache").exit_code == 0
    first, cache = node.expectations["self_test"]["first_port"], f"{node.root}/{self_test.CACHE}"
    assert sorted(seen.read_text().splitlines()) == [f"{n} 2 localhost:{first + n} {cache}" for n in range(CORES)]


def test_self_test_does_not_exceed_its_time_limit(node: VerifiedNode):
    node.framework("pytorch", "2_9", modules=torch_modules())
    node.expect(self_test=node.expectations["self_test"] | {"all_seconds": 0})
    assert self_tested(node) == "each of cores 0-3 was not tried: the self-test ran out of time"


def test_compiler_beside_the_framework_is_found(node: VerifiedNode):
    modules = torch_modules()
    modules["torch/__init__.py"] += "import shutil\nassert shutil.which('neuronx-cc')\n"
    node.framework("pytorch", "2_9", modules=modules)
    compiler = node.root / "opt/aws_neuronx_venv_pytorch_2_9/bin/neuronx-cc"
    compiler.touch(0o755)
    assert self_tested(node) == ""


def test_newest_environment_with_the_framework_is_used(node: VerifiedNode):
    for version in ("2_10", "2_9_nxd_inference", "inference_vllm_0_16"):
        node.framework("pytorch", version)
    assert node.run("verify").check("framework").found == "aws_neuronx_venv_pytorch_2_10"


def test_expected_numbers_are_nonzero_and_exact_in_bf16():
    assert all(0 < number <= 2**8 and number == int(number) for number in compute.EXPECTED)


def test_expected_numbers_detect_a_shuffled_matrix():
    rows = [tuple(compute.EXPECTED[start : start + compute.SIZE]) for start in range(0, 1024, compute.SIZE)]
    assert len(set(rows)) > 1
    assert len(set(zip(*rows, strict=True))) > 1


def test_unreadable_memory_under_jax_is_not_a_core_failure(jax_node: VerifiedNode):
    jax_node.framework("jax", "0_9", modules=jax_modules(cores=CORES, fault="crash in memory", core=0))
    outcome = jax_node.run("verify")
    assert outcome.record
    assert outcome.record.state == "verified"
    assert outcome.check("self-test").found == f"{CORES} of {CORES} cores, with aws_neuronx_venv_jax_0_9"
    assert "each of cores 0-3 has not read its device memory: " in outcome.check("memory-test").warning


@pytest.mark.parametrize("fault", ["", "memory"])
def test_wrong_device_memory_is_reported_under_native_pytorch(native_node: VerifiedNode, fault: str):
    native_node.framework("torch_neuronx", "2_14_0", modules=native_modules(fault=fault, core=2))
    outcome = native_node.run("verify")
    assert outcome.check("memory-test").ok == (not fault)
