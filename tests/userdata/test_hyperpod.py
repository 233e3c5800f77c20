"""The lifecycle script of HyperPod is valid bash, and runs here on a folder in place of the instance's files."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.userdata.plans import every_plan, plan_for
from tests.userdata.test_bash import findings, shellcheck
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.hyperpod import hyperpod_files, hyperpod_script
from trainium_wire.cache_place import place_of

CACHE = "s3://cache/neuron-compile-cache"
SYSTEM = ("systemctl", "pgrep", "prlimit")
"""Programs that would find or change services and processes of the machine that runs the test."""


every_script = pytest.mark.parametrize(
    "script", sorted({hyperpod_script(node_settings(plan)) for plan in every_plan()}), ids=len
)


@every_script
def test_bash_parses_script(script: str) -> None:
    assert findings(["bash", "-n"], script) == ""


@every_script
def test_shellcheck_finds_nothing_in_script(script: str) -> None:
    assert shellcheck(script) == ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that replaces the instance's file system."""
    root = tmp_path / "root"
    for folder in ("etc/security/limits.d", "etc/profile.d", "etc/sysctl.d", "proc/sys/net/ipv4"):
        (root / folder).mkdir(parents=True)
    (root / "proc/sys/net/ipv4/ip_local_reserved_ports").write_text("8080\n")
    return root


def run(plan: Plan, root: Path) -> list[str]:
    """Run the script as HyperPod does, from another folder. Returns its calls of system programs."""
    scripts, programs, calls = root.parent / "scripts", root.parent / "bin", root.parent / "calls"
    for folder in (scripts, programs):
        folder.mkdir(exist_ok=True)
    for name, text in hyperpod_files(
        node_settings(plan), script="on_create.sh", region="us-west-2", cache_url=CACHE
    ).items():
        (scripts / name).write_text(text)
    for name in SYSTEM:
        (programs / name).write_text(f'#!/bin/bash\necho "{name} $*" >>{calls}\n')
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(root)}
    subprocess.run(["bash", scripts / "on_create.sh"], env=environment, cwd="/", check=True, capture_output=True)
    return calls.read_text().splitlines()


def test_instance_gets_environment_limits_and_ports_for_training(root: Path) -> None:
    calls = run(plan_for("trn1.32xlarge"), root)
    environment = (root / "etc/trn/environment").read_text().splitlines()
    assert {f"NEURON_COMPILE_CACHE_URL={CACHE}/direct", "FI_PROVIDER=efa", "AWS_REGION=us-west-2"} <= {*environment}
    assert "/etc/trn/environment" in (root / "etc/profile.d/trn.sh").read_text()
    assert "* - memlock unlimited" in (root / "etc/security/limits.d/99-trn.conf").read_text()
    assert (root / "proc/sys/net/ipv4/ip_local_reserved_ports").read_text().startswith("8080,")
    # Last, because jobs inherit the limits of this daemon.
    assert calls[-1] == "systemctl try-restart slurmd.service"


def install_compiler(root: Path, environment: str, version: str) -> Path:
    venv = root / "opt" / environment
    (venv / f"lib/python3.11/site-packages/neuronx_cc-{version}.dist-info").mkdir(parents=True)
    return venv


def last_cache_url(root: Path) -> str:
    """The value in a shell that reads the environment."""
    lines = (root / "etc/trn/environment").read_text().splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith("NEURON_COMPILE_CACHE_URL=")][-1]


def test_graphs_are_stored_under_the_newest_compiler_of_pytorch(root: Path) -> None:
    install_compiler(root, "aws_neuronx_venv_pytorch_2_9", "2.20.1+a1")
    install_compiler(root, "aws_neuronx_venv_pytorch_2_10", "2.21.2+b2")
    install_compiler(root, "aws_neuronx_venv_pytorch_2_11_nxd_training", "2.99")
    run(plan_for("trn2.48xlarge"), root)
    where = place_of(compiler="2.21.2+b2", instance_type="trn2.48xlarge", lnc=2, stack="xla", world_size=0)
    assert last_cache_url(root) == f"{CACHE}/{where.direct_path}"


def test_job_gets_the_cache_url_for_its_environment_and_processes(root: Path, tmp_path: Path) -> None:
    install_compiler(root, "aws_neuronx_venv_pytorch_2_9", "2.20.1+a1")
    own = install_compiler(tmp_path / "home", "venv", "2.22")
    run(plan_for("trn1.32xlarge"), root)
    environment = {"PATH": os.environ["PATH"], "VIRTUAL_ENV": str(own)}
    printed = subprocess.run(
        [root / "usr/local/bin/trn-cache-url", "64"], env=environment, check=True, capture_output=True, text=True
    )
    where = place_of(compiler="2.22", instance_type="trn1.32xlarge", lnc=1, stack="xla", world_size=64)
    assert printed.stdout.strip() == f"{CACHE}/{where.direct_path}"


def test_script_can_run_again(root: Path) -> None:
    plan = plan_for("trn2.48xlarge")
    run(plan, root)
    before = {file: file.read_text() for file in root.rglob("*") if file.is_file()}
    run(plan, root)
    assert {file: file.read_text() for file in root.rglob("*") if file.is_file()} == before
