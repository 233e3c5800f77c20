"""The scripts of nodes are valid bash according to bash and shellcheck."""

import re
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.userdata.parts import parts_of, script_of
from tests.userdata.plans import LOCATIONS, every_plan, plan_for
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.node_files import slurm_files
from trainium_userdata.script import (
    TEMPLATES,
    boot_script,
    eks_node_script,
    eks_user_data,
    node_script,
    node_user_data,
    slurm_script,
)

SETUP_SCRIPT = "#!/bin/bash\nset -e\ncat <<EOF\n$HOME ${#x[@]} 'unbalanced\nEOF\nEND\n"
INSTALL = {"neuron_software": "install", "ami": "ami-0123456789abcdef0", "egress": "nat-gateway"}
OPTIONS: list[dict[str, Any]] = [{}, {"setup_script": SETUP_SCRIPT}, INSTALL, {"fsx_lustre": 1200}, {"efs": "new"}]
SHELLCHECK = Path(sysconfig.get_path("scripts")) / "shellcheck"


def scripts() -> Iterator[str]:
    for plan in every_plan():
        yield boot_script(node_settings(plan))
    for options in OPTIONS:
        plan = plan_for("trn2.48xlarge", **options)
        yield boot_script(node_settings(plan))
        yield node_script(node_settings(plan))
        yield from of_eks(plan)
        if "neuron_software" not in options:
            yield from of_slurm(plan)
        yield script_of(node_user_data(node_settings(plan), LOCATIONS))


def of_slurm(plan: Plan) -> Iterator[str]:
    node = node_settings(plan)
    yield from (slurm_script(node, role) for role in ("slurm", "login"))
    yield from (file.text for file in slurm_files(node, boot_script="", constant_text=template) if is_shell(file.path))
    yield from (boot_script(node, role) for role in ("slurm", "login"))


def of_eks(plan: Plan) -> Iterator[str]:
    script = eks_node_script(node_settings(plan))
    yield script
    yield boot_script(node_settings(plan), "eks")
    config = yaml.safe_load(parts_of(eks_user_data(LOCATIONS, script=script))["text/cloud-config"])
    yield from (file["content"] for file in config["write_files"] if file["path"].endswith(".sh"))


def template(name: str) -> str:
    return TEMPLATES.get_template(f"{name}.j2").render(slurm_version="26.05")


def is_shell(path: str) -> bool:
    return path.endswith(("trn-slurm", "epilog"))


@cache
def distinct_scripts() -> list[str]:
    """All scripts; of those that differ only in numbers and digests, one."""
    return list({re.sub(r"[0-9a-f]{64}|\d+", "", text): text for text in scripts()}.values())


def scripts_with_every_line() -> list[str]:
    """Scripts that together contain every line of all scripts: shellcheck takes a quarter of a second for each."""
    seen, chosen = set[str](), list[str]()
    for script in sorted(distinct_scripts(), key=len, reverse=True):
        lines = set(re.sub(r"\d+", "", script).splitlines())
        if not lines <= seen:
            seen |= lines
            chosen.append(script)
    return chosen


def findings(command: Sequence[str], script: str) -> str:
    """The output of a program that reads the script from its standard input, and its exit code if it is not 0."""
    run = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr + (f"exit code {run.returncode}" if run.returncode else "")


def shellcheck(script: str) -> str:
    return findings([str(SHELLCHECK), "--severity=style", "-"], script)


@pytest.mark.parametrize("script", distinct_scripts(), ids=len)
def test_bash_parses_script(script: str):
    assert findings(["bash", "-n"], script) == ""


@pytest.mark.parametrize("script", scripts_with_every_line(), ids=len)
def test_shellcheck_finds_nothing_in_script(script: str):
    assert shellcheck(script) == ""


@pytest.mark.parametrize(
    "function", ["install_efa", "install_with_dnf", "sha256sum", "mount_shared", "run_setup_script"]
)
def test_scripts_contain_the_part_of_each_option(function: str):
    assert [text for text in distinct_scripts() if function in text]
