"""Every rendered script is sound bash, by the two programs that know."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.userdata.plans import PLACES, every_plan
from trainium_userdata import node_user_data

SETUP_SCRIPT = "#!/bin/bash\nset -e\ncat <<EOF\n$HOME ${#x[@]} 'unbalanced\nEOF\n"
SHELLCHECK = Path(sysconfig.get_path("scripts")) / "shellcheck"


def distinct_scripts() -> list[str]:
    """Every script there can be, but for those that differ from another in numbers only."""
    texts = (node_user_data(plan, PLACES) for setup in (None, SETUP_SCRIPT) for plan in every_plan(setup_script=setup))
    return list({re.sub(r"\d+", "", text): text for text in texts}.values())


@pytest.fixture(params=distinct_scripts(), ids=len)
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "user-data"
    file.write_text(request.param)
    return file


@pytest.mark.parametrize("command", [["bash", "-n"], [str(SHELLCHECK), "--severity=style"]], ids=["bash", "shellcheck"])
def test_a_script_has_no_finding(command: list[str], script: Path):
    run = subprocess.run([*command, str(script)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_the_variants_differ_by_efa_lnc_and_setup_script():
    assert len(distinct_scripts()) == 6
