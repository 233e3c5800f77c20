"""Each engine is a separate folder. It imports no other engine, and shared code imports no engine."""

import ast
from pathlib import Path

import pytest

from tests.layout.imported_names import imported_names, module_name
from tests.layout.repository import ROOT, python_files

CORE = Path("src/trainium_core")
ENGINES = sorted({file.parts[3] for file in python_files() if file.is_relative_to(CORE / "engines") and file.parts[4:]})


def imports_of(folder: Path) -> dict[str, set[str]]:
    """The modules that each file below a folder imports, and the names that it imports from them."""
    sources = {file: (ROOT / file).read_text() for file in python_files() if file.is_relative_to(folder)}
    assert sources, f"there is no {folder}"
    known = {module_name(file) for file in sources}
    return {str(file): set(imported_names(module_name(file), source, known)) for file, source in sources.items()}


def engine_of(module: str) -> str | None:
    """The engine that a module belongs to; None if it belongs to none, or to all."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["trainium_core", "engines"] and parts[2:3] and parts[2] in ENGINES else None


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_imports_no_other_engine(engine: str) -> None:
    for file, modules in imports_of(CORE / "engines" / engine).items():
        assert {engine_of(module) for module in modules} <= {engine, None}, file


SHARED = sorted({file.parts[2] for file in python_files() if file.is_relative_to(CORE)} - {"engines"})
"""The folders and top-level modules that every engine may use."""


@pytest.mark.parametrize("folder", SHARED)
def test_shared_code_imports_no_engine(folder: str) -> None:
    for file, modules in imports_of(CORE / folder).items():
        assert {engine_of(module) for module in modules} <= {None}, file


@pytest.mark.parametrize("folder", sorted(set(SHARED) - {"plan", "naming.py", "clusters", "quotas"}))
def test_shared_code_except_plan_and_naming_does_not_name_pcs(folder: str) -> None:
    """PCS represents all engines: shared code uses an `Engine` and does not depend on which one."""
    for file in imports_of(CORE / folder):
        tree = ast.parse((ROOT / file).read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        compared = [
            node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.Assign | ast.AnnAssign | ast.Call)
        ]
        texts = {part.value for node in compared for part in ast.walk(node) if isinstance(part, ast.Constant)}
        assert not [name for name in names if "pcs" in name.lower().split("_")], file
        assert texts.isdisjoint({"pcs", "AWS::PCS::Cluster"}), file


def test_declaration_of_settings_does_not_import_the_plan() -> None:
    for file, modules in imports_of(CORE / "setting_schema").items():
        assert not [module for module in modules if module.startswith("trainium_core.plan")], file


def test_import_of_another_engine_is_found() -> None:
    relative = imported_names("trainium_core.engines.ec2.costs", "from ..pcs import costs", ())
    assert {engine_of(module) for module in relative} == {"pcs"}
    assert engine_of("trainium_core.engines.pcs.costs") == "pcs"
    assert engine_of("trainium_core.engines.registry") is None
