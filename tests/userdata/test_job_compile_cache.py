"""Jobs and their compile caches: the real wrapper, fake compilers, and a stand-in for S3 that checks signatures."""

import base64
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import place
from tests.userdata.frameworks import TORCH_NEURONX
from tests.userdata.job_nodes import JobNodes
from trainium_core.jobs.job import new_job
from trainium_core.jobs.request import JobRequest, job_request, read_job_file
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


@pytest.mark.parametrize(("unavailable", "hits"), [(3, 2), (1000, 0)], ids=["briefly", "for long"])
def test_job_waits_briefly_for_its_cache_and_then_starts_with_a_warning(
    nodes: JobNodes, unavailable: int, hits: int
) -> None:
    nodes.start(COMPILES, compile_cache=cache_of(nodes.folder / "first"))
    assert nodes.wait() == [0]
    seen = 0

    def status(name: str) -> int:
        nonlocal seen
        seen += name.startswith("compiled")
        return 503 if name.startswith("compiled") and seen <= unavailable else 200

    nodes.aws.get_status = status
    nodes.next_attempt()
    nodes.start(COMPILES, compile_cache={**cache_of(nodes.folder / "second"), "read_only": True})
    assert nodes.wait() == [0]
    (found,) = nodes.record()["compile_caches"]
    assert found["hits"] == hits
    assert ("not filled from S3: S3 is unavailable for GET" in nodes.log()) == (hits == 0)


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


GUIDE = Path(__file__).parents[2] / "docs/guides/compile-cache.md"
TRAINS = f"""
import os, sys
sys.path.insert(0, {str(Path(fake_compiler.__file__).parent)!r})
import fake_compiler
stack, name = ("native", "TORCH_NEURONX_NEFF_CACHE_DIR")
if name not in os.environ:
    stack, name = ("xla", "NEURON_COMPILE_CACHE_URL")
folder = fake_compiler.Path(os.environ[name])
for step in range(1, int(sys.argv[sys.argv.index("--steps") + 1]) + 1):
    module = "ab"[min(step, 2) - 1]
    if os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY") == "1":
        for part in [*fake_compiler.steps(stack, folder, module)][:2]:
            part()
    else:
        fake_compiler.work(stack, folder, module)
        print(f"TRN step={{step}}", flush=True)
"""
"""A script with one graph for its first step and one for the others. Collecting writes only their HLO."""

PROGRAMS = {
    "torchrun": f"""while [[ $1 == --* ]]; do [[ $1 == *=?* ]] || exit 2; shift; done
exec {sys.executable} "$@" """,
    "neuron_parallel_compile": f"""NEURON_EXTRACT_GRAPHS_ONLY=1 "$@" || exit
failures=0
for graph in "$NEURON_COMPILE_CACHE_URL"/*/*/model.hlo_module.pb; do
  {sys.executable} {fake_compiler.__file__} xla "$NEURON_COMPILE_CACHE_URL" "$(<"$graph")" || ((++failures))
done
exit "$failures" """,
}
"""Stand-ins that do what the documentation of torchrun and neuron_parallel_compile says, with one process per node."""


def run_on_new_nodes(
    nodes: JobNodes, request: JobRequest, *, count: int, exit_code: int = 0, **environment: str
) -> list[tuple[int, int]]:
    """Run a job on all nodes of a cluster, each with an empty disk, and return the hits and misses of each node."""
    instance_type = {"xla": "trn1.32xlarge", "native": "trn2.48xlarge"}[str(request.framework)]
    plan = Plan.of(instance_type=instance_type, region="us-east-2", nodes=count, ami="ami-0123456789abcdef0")
    programs = nodes.folder / "bin"
    programs.mkdir(exist_ok=True)
    for program, body in PROGRAMS.items():
        (programs / program).write_text(f"#!/bin/bash\n{body}\n")
        (programs / program).chmod(0o755)
    profile = {"TRN_NEURON_CORES": plan.processes_per_node, "TRN_RENDEZVOUS_PORT": 41000, "PATH": f"{programs}:$PATH"}
    (nodes.folder / ".bash_profile").write_text("".join(f"export {key}={value}\n" for key, value in profile.items()))
    script = request.script and request.script.name
    job = new_job(plan, request, script=script, now=datetime(2026, 11, 23, tzinfo=UTC))
    for rank in range(count):
        nodes.start(
            TRAINS,
            nodes=count,
            ranks=(rank,),
            command=job.command,
            processes_per_node=job.processes_per_node,
            environment={**job.environment, **environment},
            compile_cache={**cache_of(nodes.folder / f"disk-{nodes.attempt}-{rank}"), "stack": request.framework},
        )
    assert nodes.wait() == [exit_code] * count, nodes.log()
    found = [use for rank in range(count) for use in nodes.record(rank)["compile_caches"]]
    nodes.next_attempt()
    return [(use["hits"], use["misses"]) for use in found]


def documented_job(tmp_path: Path, stack: str) -> JobRequest:
    """The job file of the guide that compiles graphs of a stack."""
    files = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    (text,) = [file for file in files if f'framework = "{stack}"' in file]
    (tmp_path / "train.py").touch()
    path = tmp_path / "compile.toml"
    path.write_text(text)
    return job_request(read_job_file(path))


def next_job(stack: str) -> JobRequest:
    return JobRequest(script=Path("train.py"), arguments=("--steps", "9"), framework=stack)


@pytest.mark.parametrize("stack", ["xla", "native"])
def test_documented_job_compiles_every_graph_of_the_next_job(nodes: JobNodes, tmp_path: Path, stack: str) -> None:
    run_on_new_nodes(nodes, documented_job(tmp_path, stack), count=2)
    assert len(stored(nodes)) == 2
    assert run_on_new_nodes(nodes, next_job(stack), count=2) == [(2, 0), (2, 0)]


def test_next_job_finds_the_graphs_of_a_job_that_failed_to_compile_one(nodes: JobNodes, tmp_path: Path) -> None:
    run_on_new_nodes(nodes, documented_job(tmp_path, "xla"), count=1, exit_code=1, FAIL="b")
    assert len(stored(nodes)) == 1
    assert run_on_new_nodes(nodes, next_job("xla"), count=1) == [(1, 1)]
