"""The lifecycle script of HyperPod: sound bash, run for real in a folder, and made of the parts of the boot script."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.userdata.plans import every_plan, plan_for
from tests.userdata.test_bash import findings, shellcheck
from tests.verdicts import Verdicts
from trainium_core.plan import Plan
from trainium_userdata.hyperpod import hyperpod_files, hyperpod_script

CACHE = "s3://cache/neuron-compile-cache"
SYSTEM = ("systemctl", "pgrep", "prlimit")
"""Programs that would change the machine which the test runs on."""


every_script = pytest.mark.parametrize("script", sorted({hyperpod_script(plan) for plan in every_plan()}), ids=len)


@every_script
def test_bash_reads_a_script(script: str) -> None:
    assert findings(["bash", "-n"], script) == ""


@every_script
def test_shellcheck_finds_nothing_in_a_script(script: str, verdicts: Verdicts) -> None:
    assert shellcheck(script, verdicts) == ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that stands for the instance's file system."""
    root = tmp_path / "root"
    for folder in ("etc/security/limits.d", "etc/profile.d", "etc/sysctl.d", "proc/sys/net/ipv4"):
        (root / folder).mkdir(parents=True)
    (root / "proc/sys/net/ipv4/ip_local_reserved_ports").write_text("8080\n")
    return root


def run(plan: Plan, root: Path) -> list[str]:
    """Run the script as HyperPod does, from another folder. Returns what it asked of the system."""
    scripts, programs, parameters = root.parent / "scripts", root.parent / "bin", root.parent / "asked"
    for folder in (scripts, programs):
        folder.mkdir(exist_ok=True)
    for name, text in hyperpod_files(plan, script="on_create.sh", region="us-west-2", cache_url=CACHE).items():
        (scripts / name).write_text(text)
    for name in SYSTEM:
        (programs / name).write_text(f'#!/bin/bash\necho "{name} $*" >>{parameters}\n')
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(root)}
    subprocess.run(["bash", scripts / "on_create.sh"], env=environment, cwd="/", check=True, capture_output=True)
    return parameters.read_text().splitlines()


def test_an_instance_gets_the_training_environment(root: Path) -> None:
    run(plan_for("trn1.32xlarge"), root)
    environment = (root / "etc/trn/environment").read_text().splitlines()
    assert f"NEURON_COMPILE_CACHE_URL={CACHE}/direct" in environment
    assert "FI_PROVIDER=efa" in environment
    assert "AWS_REGION=us-west-2" in environment


def test_every_login_has_it(root: Path) -> None:
    run(plan_for("trn1.32xlarge"), root)
    assert "/etc/trn/environment" in (root / "etc/profile.d/trn.sh").read_text()


def test_memory_can_be_locked(root: Path) -> None:
    run(plan_for("trn1.32xlarge"), root)
    assert "* - memlock unlimited" in (root / "etc/security/limits.d/99-trn.conf").read_text()


def test_ports_that_others_reserved_stay_reserved(root: Path) -> None:
    run(plan_for("trn1.32xlarge"), root)
    assert (root / "proc/sys/net/ipv4/ip_local_reserved_ports").read_text().startswith("8080,")


def test_the_daemon_that_starts_jobs_is_restarted_last(root: Path) -> None:
    assert run(plan_for("trn1.32xlarge"), root)[-1] == "systemctl try-restart slurmd.service"


def test_it_can_run_again(root: Path) -> None:
    plan = plan_for("trn2.48xlarge")
    run(plan, root)
    before = {file: file.read_text() for file in root.rglob("*") if file.is_file()}
    run(plan, root)
    assert {file: file.read_text() for file in root.rglob("*") if file.is_file()} == before
