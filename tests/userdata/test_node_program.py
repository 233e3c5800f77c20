"""What every Python module on a node keeps to, since it runs on whatever Python an image has."""

import ast
import re
import sys
from pathlib import Path

import pytest

from trainium_core.compile_cache import place
from trainium_userdata import node

MODULES = [*sorted(Path(node.__file__).parent.glob("trn_*/*.py")), Path(place.__file__)]
OF_CORE = "trainium_core.compile_cache.place"
"""The one module of another package that nodes have."""
PYTHON = {"trn_node": (3, 9), "trn_job": (3, 8), "trn_cache": (3, 8), "compile_cache": (3, 8)}
MAY_IMPORT = {
    "trn_node": {"trainium_core"},
    "trn_job": {"trn_node", "trn_cache", "trainium_core"},
    "trn_cache": {"trn_node", "trainium_core"},
    "compile_cache": set[str](),
}


def name_of(module: Path) -> str:
    return f"{module.parent.name}-{module.stem}"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_are_of_the_oldest_python_that_runs_them(module: Path):
    ast.parse(module.read_text(), feature_version=PYTHON[module.parent.name])


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_import_the_standard_library_and_each_other(module: Path):
    imported = {
        (alias.name if isinstance(node, ast.Import) else str(node.module)).split(".")[0]
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for alias in node.names
    }
    assert imported <= sys.stdlib_module_names | MAY_IMPORT[module.parent.name]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_of_core_modules_import_what_nodes_have_alone(module: Path):
    lines = re.findall(r"^\s*(?:from|import) (trainium_core\S*)", module.read_text(), re.MULTILINE)
    assert {*lines} <= {OF_CORE}


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_with_annotations_do_not_evaluate_them(module: Path):
    # Python 3.9 cannot evaluate `int | None`.
    tree = ast.parse(module.read_text())
    annotated = any(isinstance(node, ast.AnnAssign | ast.FunctionDef) for node in ast.walk(tree))
    assert not annotated or "from __future__ import annotations" in module.read_text()
