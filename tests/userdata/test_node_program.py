"""The rules for Python modules on a node, which run on the Python of any image."""

import ast
import sys
from pathlib import Path

import pytest

import trainium_wire
from trainium_userdata import node

MODULES = [
    *sorted(Path(node.__file__).parent.glob("trn_*/*.py")),
    *sorted(Path(trainium_wire.__file__).parent.glob("*.py")),
]
PYTHON = {
    "trainium_wire": (3, 8),
    "trn_node": (3, 9),
    "trn_job": (3, 9),
    "trn_cache": (3, 9),
    "trn_slurm": (3, 9),
    "trn_eks": (3, 9),
    "trn_pod": (3, 9),
}
MAY_IMPORT = {
    "trainium_wire": {"trainium_wire"},
    "trn_node": {"trainium_wire"},
    "trn_job": {"trn_node", "trn_cache", "trainium_wire"},
    "trn_cache": {"trn_node", "trainium_wire"},
    "trn_slurm": {"trn_node", "trn_job", "trn_cache", "trainium_wire"},
    "trn_eks": {"trn_node", "trainium_wire"},
    "trn_pod": {"trn_node", "trn_job", "trainium_wire"},
}


def name_of(module: Path) -> str:
    return f"{module.parent.name}-{module.stem}"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_parse_on_the_oldest_python_that_runs_them(module: Path):
    ast.parse(module.read_text(), feature_version=PYTHON[module.parent.name])


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_import_only_the_standard_library_and_each_other(module: Path):
    imported = {
        (alias.name if isinstance(node, ast.Import) else str(node.module)).split(".")[0]
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for alias in node.names
    }
    assert imported <= sys.stdlib_module_names | MAY_IMPORT[module.parent.name]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_with_annotations_do_not_evaluate_them(module: Path):
    # Python 3.9 cannot evaluate `int | None`.
    tree = ast.parse(module.read_text())
    annotated = any(isinstance(node, ast.AnnAssign | ast.FunctionDef) for node in ast.walk(tree))
    assert not annotated or "from __future__ import annotations" in module.read_text()


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_do_not_use_datetime_utc_of_python_3_11(module: Path):
    assert "UTC" not in {
        alias.name
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "datetime"
        for alias in node.names
    }
