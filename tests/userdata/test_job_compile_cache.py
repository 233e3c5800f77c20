"""Jobs and their compile caches: the real wrapper, fake compilers, and a stand-in for S3 that checks signatures."""

import base64
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import place
from tests.userdata.frameworks import TORCH_NEURONX
from tests.userdata.job_nodes import JobNodes
from trainium_core.jobs.precompile import precompile_job
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan
from trainium_wire.cache_place import NATIVE_LOCAL_FOLDER
from trn_cache.cache import BOOT, BOOT_ID
from trn_node import job_cache

COMPILES = f"""
import os, subprocess, sys, time
stack, folder = ("xla", os.environ["NEURON_COMPILE_CACHE_URL"])
done = subprocess.call([sys.executable, {fake_compiler.__file__!r}, stack, folder, "a", "b"])
print("TRN step=1", flush=True)
time.sleep(float(os.environ.get("LASTS", "0")))
sys.exit(done)
"""


def cache_of(folder: Path, *, compiler: str = fake_compiler.COMPILER) -> dict[str, Any]:
    venv = folder / "venv"
    (venv / f"lib/python3.11/site-packages/neuronx_cc-{compiler}.dist-info").mkdir(parents=True, exist_ok=True)
    shown = {"url": "s3://compiled/cache", "stack": "xla", "instance_type": "trn2.48xlarge", "lnc": 2}
    return {**shown, "folder": str(folder / "cache"), "venv": str(venv)}


def stored(nodes: JobNodes) -> list[str]:
    return [key for key in nodes.aws.records if key.startswith("compiled/")]


def test_second_job_on_another_node_reuses_compiled_graphs(nodes: JobNodes) -> None:
    nodes.start(COMPILES, compile_cache=cache_of(nodes.folder / "first"))
    assert nodes.wait() == [0]
    (cold,) = nodes.record()["compile_caches"]
    assert (cold["hits"], cold["misses"], cold["stored"]) == (0, 2, 2)
    assert cold["reasons"] == {"first time": 2}
    names = sorted(fake_compiler.name_of("xla", module).rpartition("/")[2] for module in "ab")
    assert cold["missed"] == [f"{name}: first time" for name in names]
    assert len(stored(nodes)) == 2
    nodes.next_attempt()
    nodes.start(COMPILES, compile_cache=cache_of(nodes.folder / "second"))
    assert nodes.wait() == [0]
    (warm,) = nodes.record()["compile_caches"]
    assert (warm["hits"], warm["misses"], warm["fetched"], warm["stored"]) == (2, 0, 2, 0)
    assert "compile_cache" in nodes.record()["phases"]


USES_TORCH_NEURONX = f"""
import importlib.util, os
spec = importlib.util.spec_from_file_location("torch_neuronx", {str(TORCH_NEURONX)!r})
torch_neuronx = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torch_neuronx)
print(torch_neuronx.execute("matmul", lambda: "on the device", lambda: "on the CPU"))
"""


def test_read_only_cache_is_read_and_never_written(nodes: JobNodes) -> None:
    nodes.start(COMPILES, compile_cache=cache_of(nodes.folder / "first"))
    nodes.wait()
    nodes.next_attempt()
    before = dict(nodes.aws.records)
    nodes.start(COMPILES.replace('"b"', '"c"'), compile_cache={**cache_of(nodes.folder / "second"), "read_only": True})
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert (found["hits"], found["misses"], found["stored"], found["warnings"]) == (1, 1, 0, [])
    assert stored(nodes) == [key for key in before if key.startswith("compiled/")]


def test_native_pytorch_compiles_and_locks_in_the_folder_of_the_job(nodes: JobNodes) -> None:
    settings = {**cache_of(nodes.folder), "stack": "native"}
    nodes.start(USES_TORCH_NEURONX, compile_cache=settings)
    assert nodes.wait() == [0]
    assert "on the device\n" in nodes.log()
    (lock,) = Path(settings["folder"]).rglob(".local/locks/*.lock")
    (found,) = nodes.record()["compile_caches"]
    assert (found["misses"], found["stored"], found["removed"]) == (1, 1, [])
    assert [key for key in stored(nodes) if lock.stem in key]


def test_variables_of_the_job_override_those_of_its_cache(nodes: JobNodes) -> None:
    settings = {**cache_of(nodes.folder), "stack": "native"}
    nodes.start(
        USES_TORCH_NEURONX, environment={NATIVE_LOCAL_FOLDER: str(nodes.folder / "own")}, compile_cache=settings
    )
    assert nodes.wait() == [0]
    assert list((nodes.folder / "own/locks").iterdir())


def test_graphs_of_a_stopped_job_are_stored(nodes: JobNodes) -> None:
    nodes.start(COMPILES, environment={"LASTS": "600"}, compile_cache=cache_of(nodes.folder))
    nodes.await_(lambda: nodes.record().get("progress"))
    nodes.put("stop.json", {"at": "2026-11-22T19:05:01Z", "reason": "enough"})
    assert nodes.wait() == [1]
    assert nodes.end["result"] == "stopped"
    assert len(stored(nodes)) == 2


def test_leftovers_of_dead_compilers_delay_no_job(nodes: JobNodes) -> None:
    settings = cache_of(nodes.folder)
    root = Path(settings["folder"], place(world_size=1).path)
    fake_compiler.fail("xla", root, "a")
    lock = fake_compiler.lock_of("xla", root, "b")
    lock.parent.mkdir(parents=True)
    lock.touch()
    (root / BOOT).write_text(BOOT_ID.read_text().strip())
    nodes.start(COMPILES, compile_cache=settings)
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    failed, locked = (fake_compiler.name_of("xla", module) for module in ("a", "b"))
    assert {*found["removed"]} == {f"{failed}: failed: [F137] neuronx-cc was forcibly killed", f"{locked}: locked"}
    assert (found["misses"], found["failed"], found["stored"]) == (2, [], 2)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"NEURON_LOGICAL_NC_CONFIG": "1"}, "trn2-lnc1"), ({"NEURON_COMPILE_CACHE_URL": "/tmp/own-cache"}, None)],
)
def test_job_environment_selects_the_place(nodes: JobNodes, environment: dict[str, str], expected: str | None) -> None:
    nodes.start("", environment=environment, compile_cache=cache_of(nodes.folder))
    assert nodes.wait() == [0]
    caches = nodes.record()["compile_caches"]
    assert [each["place"].split("/")[1] for each in caches] == ([expected] if expected else [])


def test_variables_of_the_plan_count_as_those_of_the_job(nodes: JobNodes) -> None:
    (nodes.folder / "etc/trn/environment.base64").write_text(
        f"NEURON_LOGICAL_NC_CONFIG={base64.b64encode(b'1').decode()}\n"
    )
    nodes.start("", compile_cache=cache_of(nodes.folder))
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert found["place"].split("/")[1] == "trn2-lnc1"


@pytest.mark.parametrize("flags", ["--cache_dir=/tmp/mine -O1", "-O1 --no_cache"])
def test_flags_that_name_another_cache_are_reported(nodes: JobNodes, flags: str) -> None:
    nodes.start("", environment={"NEURON_CC_FLAGS": flags}, compile_cache=cache_of(nodes.folder))
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert found["warnings"] == ["no compile cache for xla: NEURON_CC_FLAGS contains --cache_dir or --no_cache"]


def test_compiler_of_unknown_version_has_no_cache(nodes: JobNodes) -> None:
    nodes.start("", compile_cache={**cache_of(nodes.folder), "venv": str(nodes.folder / "none")})
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert found["warnings"] == ["no compile cache for xla: '' is not a version of the Neuron compiler"]


def test_invalid_core_configuration_is_reported(nodes: JobNodes) -> None:
    nodes.start("", environment={"NEURON_LOGICAL_NC_CONFIG": "two"}, compile_cache=cache_of(nodes.folder))
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert found["warnings"] == [
        "no compile cache for xla: NEURON_LOGICAL_NC_CONFIG or NEURON_RT_VIRTUAL_CORE_SIZE is 'two', not a number"
    ]


def test_job_without_its_cache_bucket_succeeds_with_a_warning(nodes: JobNodes) -> None:
    settings = {**cache_of(nodes.folder), "url": "s3://re fused/cache"}
    nodes.start(COMPILES, compile_cache=settings)
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert found["misses"] == 2
    assert [text.split(":")[0] for text in found["warnings"]] == ["not filled from S3", "not written to S3"]


@pytest.mark.parametrize("stack", ["xla", None])
def test_node_finds_its_compile_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: str | None) -> None:
    monkeypatch.setenv("ROOT", str(tmp_path))
    (tmp_path / "etc/trn").mkdir(parents=True)
    (tmp_path / "etc/trn/places.env").write_text("TRN_CACHE_URL=s3://compiled/cache\n")
    (tmp_path / "etc/trn/plan.json").write_text(
        '{"instance_type": "trn1.32xlarge", "logical_neuroncore_config": null,'
        ' "frameworks": {"torch_neuronx": "native", "pytorch": "xla"}}'
    )
    assert job_cache.compile_cache(stack) is None
    python = tmp_path / "opt/aws_neuronx_venv_pytorch_2_9/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert job_cache.compile_cache(stack) == {
        "url": "s3://compiled/cache",
        "folder": str(tmp_path / "var/cache/trn/jobs"),
        "stack": "xla",
        "venv": str(python.parent.parent),
        "instance_type": "trn1.32xlarge",
        "lnc": 1,
        "read_only": False,
    }
    assert job_cache.compile_cache("native") is None
    with pytest.raises(ValueError, match="not a version of the Neuron compiler"):
        job_cache.direct_url()
    (python.parent.parent / "lib/python3.11/site-packages/neuronx_cc-2.21.1.dist-info").mkdir(parents=True)
    assert job_cache.direct_url() == "s3://compiled/cache/direct/neuronx-cc-2.21.1/trn1-lnc1/xla/world-any"


def test_job_of_several_nodes_uses_precompiled_graphs(nodes: JobNodes) -> None:
    plan = Plan.of(instance_type="trn2.48xlarge", region="us-east-2", nodes=2, precompile_instance_type="r7i.24xlarge")
    request = JobRequest(command=f"exec {sys.executable} train.py", name="train")
    ahead = precompile_job(plan, request, script=None, now=datetime(2026, 11, 23, tzinfo=UTC))
    settings: dict[str, Any] = {"processes_per_node": ahead.processes_per_node, "environment": {**ahead.environment}}
    nodes.start(COMPILES, command=ahead.command, compile_cache=cache_of(nodes.folder / "host"), **settings)
    assert nodes.wait() == [0]
    (compiled,) = nodes.record()["compile_caches"]
    assert (compiled["misses"], compiled["stored"]) == (2, 2)
    nodes.next_attempt()
    each = plan.neuron_cores_per_node
    nodes.start(COMPILES, nodes=2, processes_per_node=each, compile_cache=cache_of(nodes.folder / "node"))
    assert nodes.wait() == [0, 0]
    (found,) = nodes.record()["compile_caches"]
    assert (found["hits"], found["misses"]) == (2, 0)
