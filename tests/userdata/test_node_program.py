"""What every module of `trn-node` keeps to, since it runs on whatever Python an image has."""

import ast
import sys
from pathlib import Path

import pytest

from trainium_userdata.node import trn_node

MODULES = sorted(Path(trn_node.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_modules_are_python_3_9(module: Path):
    ast.parse(module.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_modules_import_the_standard_library_and_each_other(module: Path):
    imported = {
        (alias.name if isinstance(node, ast.Import) else str(node.module)).split(".")[0]
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for alias in node.names
    }
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_modules_with_annotations_do_not_evaluate_them(module: Path):
    # Python 3.9 cannot evaluate `int | None`.
    tree = ast.parse(module.read_text())
    annotated = any(isinstance(node, ast.AnnAssign | ast.FunctionDef) for node in ast.walk(tree))
    assert not annotated or "from __future__ import annotations" in module.read_text()
