"""Adding an engine takes its own folder and its entry in the registry; everything else finds it there."""

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trainium_core
from trainium_core.engines.projections import checks
from trainium_core.engines.registry import ENGINES

CORE = Path(trainium_core.__file__).parent
TINY = Path(__file__).parent / "tiny_engine"


@pytest.fixture(scope="module")
def uses(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each user of engines makes of the tiny one, in a copy of the core that has it."""
    root = tmp_path_factory.mktemp("core")
    copy = root / CORE.name
    link_all(CORE, copy, but="engines")
    link_all(CORE / "engines", copy / "engines", but="registry.py")
    (copy / "engines" / "tiny").symlink_to(TINY)
    registry = (CORE / "engines" / "registry.py").read_text()
    imported = "from trainium_core.engines.sagemaker import SAGEMAKER\n"
    added = registry.replace(imported, f"{imported}from trainium_core.engines.tiny import TINY\n")
    added = added.replace("    HYPERPOD,\n)", "    HYPERPOD,\n    TINY,\n)")
    (copy / "engines" / "registry.py").write_text(added)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(TINY.parents[2])])}
    command = [sys.executable, "-m", "tests.core.tiny_engine_uses"]
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def link_all(folder: Path, copy: Path, *, but: str) -> None:
    copy.mkdir()
    for entry in folder.iterdir():
        if entry.name not in (but, "__pycache__"):
            (copy / entry.name).symlink_to(entry)


def test_the_settings_of_a_new_engine_are_settings_of_the_plan(uses: Any) -> None:
    assert uses["setting"] == 3
    assert uses["in trn settings"]
    assert uses["stacks"][0].endswith("out of cluster, sagemaker, hyperpod, tiny")


def test_the_rules_of_a_new_engine_hold(uses: Any) -> None:
    assert uses["problems"] == ["up to 9"]


def test_the_warnings_of_a_new_engine_are_shown_with_the_plan(uses: Any) -> None:
    assert uses["warning"] == "3 GiB are few"


def test_the_costs_of_a_new_engine_are_estimated(uses: Any) -> None:
    assert uses["costs"] == ["3 GiB tiny"]


def test_preflight_makes_the_checks_of_a_new_engine_and_of_no_other(uses: Any) -> None:
    assert uses["check"] == "account 123456789012 has 3"
    assert uses["state of its stack"] == "TinyStack is not there yet"
    assert uses["checks of others"] == []


def test_what_a_new_engine_leaves_is_audited_and_torn_down(uses: Any) -> None:
    assert uses["audited"] == ["tiny disk"]
    assert uses["torn down"]


def test_what_runs_by_a_new_engine_is_found_and_stopped(uses: Any) -> None:
    assert uses["stopped"] == ["trn-pilot-1"]


def test_no_two_engines_have_a_check_of_the_same_name() -> None:
    names = [name for engine in ENGINES.values() for name in checks(engine)]
    assert len(names) == len(set(names))


def test_no_two_engines_have_workloads_of_the_same_kind() -> None:
    named = [engine.workloads for engine in ENGINES.values() if engine.workloads is not None]
    kinds = [kind for name in named for kind in pkgutil.resolve_name(name).stop]
    assert len(kinds) == len(set(kinds)) == 3
