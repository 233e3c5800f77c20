"""A new engine needs its own files, and one or two lines in each of four other files of the core."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trainium_core
from trainium_core.engines.registry import ENGINES

CORE = Path(trainium_core.__file__).parent
TINY = Path(__file__).parent / "tiny_engine"
ADDED = {
    "naming.py": {'    "pcs": "PcsStack",\n': '    "tiny": "TinyStack",\n'},
    "plan/values.py": {
        "from trainium_core.plan.settings.sagemaker import SageMakerSettings\n": (
            "from trainium_core.plan.settings.tiny import TinySettings\n"
        ),
        "    hyperpod: HyperPodSettings = field(default_factory=HyperPodSettings)\n": (
            "    tiny: TinySettings = field(default_factory=TinySettings)\n"
        ),
    },
    "plan/rules/__init__.py": {
        "from trainium_core.plan.rules.sagemaker import RULES as SAGEMAKER_RULES\n": (
            "from trainium_core.plan.rules.tiny import RULES as TINY_RULES\n"
        ),
        "_OF_ENGINES = (CLUSTER_RULES, SAGEMAKER_RULES, HYPERPOD_RULES, PCS_RULES": ", TINY_RULES",
    },
    "engines/registry.py": {
        "from trainium_core.engines.sagemaker.engine import SAGEMAKER\n": (
            "from trainium_core.engines.tiny.engine import TINY\n"
        ),
        "for engine in (EC2, SAGEMAKER, HYPERPOD, PCS": ", TINY",
    },
}
"""The lines that a new engine adds, by file and preceding text."""


@pytest.fixture(scope="module")
def uses(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The results of the code that uses engines, for the tiny engine, in a copy of the core."""
    root = tmp_path_factory.mktemp("core")
    copy = root / CORE.name
    shutil.copytree(CORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TINY, copy / "engines" / "tiny")
    (copy / "engines" / "tiny" / "rules.py").rename(copy / "plan" / "rules" / "tiny.py")
    (copy / "engines" / "tiny" / "settings.py").rename(copy / "plan" / "settings" / "tiny.py")
    for name, lines in ADDED.items():
        text = (copy / name).read_text()
        for line, added in lines.items():
            assert text.count(line) == 1
            text = text.replace(line, line + added)
        (copy / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(TINY.parents[2])])}
    command = [sys.executable, "-m", "tests.core.tiny_engine_uses"]
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_new_engine_reaches_settings_costs_checks_audit_and_teardown(uses: Any) -> None:
    assert uses.pop("stacks")[0].endswith("by commas: cluster, sagemaker, hyperpod, pcs, tiny")
    assert uses == {
        "setting": 3,
        "in trn settings": True,
        "problems": ["up to 9"],
        "warning": "3 GiB is little",
        "costs": ["3 GiB tiny"],
        "check": "account 123456789012 has 3",
        "state of its stack": "TinyStack does not exist yet",
        "checks of others": [],
        "audited": ["tiny disk"],
        "torn down": True,
        "stopped": ["trn-pilot-1"],
    }


def test_check_names_of_engines_are_unique() -> None:
    names = [name for engine in ENGINES.values() for name in engine.checks]
    assert len(names) == len(set(names))


def test_workload_kinds_of_engines_are_unique() -> None:
    kinds = [kind for engine in ENGINES.values() if engine.workloads for kind in engine.workloads.stop]
    assert len(kinds) == len(set(kinds))
