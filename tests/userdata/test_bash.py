"""Every rendered script is sound bash, by the two programs that know."""

import re
import subprocess
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.parts import script_of
from tests.userdata.plans import LOCATIONS, every_plan, plan_for
from trainium_userdata import node_script, node_user_data
from trainium_userdata.script import boot_script

SETUP_SCRIPT = "#!/bin/bash\nset -e\ncat <<EOF\n$HOME ${#x[@]} 'unbalanced\nEOF\nEND\n"
INSTALL = {"neuron_software": "install", "ami": "ami-0123456789abcdef0", "egress": "nat-gateway"}
OPTIONS: list[dict[str, Any]] = [{}, {"setup_script": SETUP_SCRIPT}, INSTALL, {"fsx_lustre": 1200}, {"efs": "new"}]
SHELLCHECK = Path(sysconfig.get_path("scripts")) / "shellcheck"


def scripts() -> Iterator[str]:
    for options in OPTIONS:
        for plan in every_plan(**options):
            yield boot_script(plan)
        plan = plan_for("trn2.48xlarge", **options)
        yield node_script(plan)
        yield script_of(node_user_data(plan, LOCATIONS))


@cache
def distinct_scripts() -> list[str]:
    """Every script there can be, but for those that differ from another in numbers and digests only."""
    return list({re.sub(r"[0-9a-f]{64}|\d+", "", text): text for text in scripts()}.values())


@pytest.fixture(params=distinct_scripts(), ids=len)
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "script"
    file.write_text(request.param)
    return file


@pytest.mark.parametrize("command", [["bash", "-n"], [str(SHELLCHECK), "--severity=style"]], ids=["bash", "shellcheck"])
def test_a_script_has_no_finding(command: list[str], script: Path):
    run = subprocess.run([*command, str(script)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


@pytest.mark.parametrize(
    "function", ["install_efa", "install_with_dnf", "sha256sum", "mount_shared", "run_setup_script"]
)
def test_no_option_escapes_the_check(function: str):
    assert [text for text in distinct_scripts() if function in text]
