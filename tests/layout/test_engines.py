"""Each engine is a separate folder. It imports no other engine, and shared code imports no engine."""

import ast
import re
import subprocess
import sys
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


OWN_PLACES = ("/{key}/", "/{key}.py", "/{key}_", "_{key}.py")
"""Parts of the paths of an engine's own files: its folders, settings, rules, stack and modules."""


def names_in(source: str) -> set[str]:
    """Identifiers, imported modules, and texts that are one word, in lower case."""
    tree = list(ast.walk(ast.parse(source)))
    names = {node.id for node in tree if isinstance(node, ast.Name)}
    names |= {node.attr for node in tree if isinstance(node, ast.Attribute)}
    names |= {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {node.arg for node in tree if isinstance(node, ast.keyword | ast.arg) and node.arg}
    names |= {alias.name for node in tree if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}
    names |= {node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module}
    names |= {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {name.lower() for name in names if " " not in name}


def naming_files(key: str) -> list[str]:
    """The product files outside the engine's own ones that name it, without the embedded AWS and data files."""
    word = re.compile(rf"(?<![a-z]){key}(?![a-z])|(?<![a-z]){key}(?=cluster|stack|settings|training|jobs)")
    product = [file for file in python_files() if file.parts[0] in ("src", "constructs", "userdata", "stacks")]
    shared = [
        file
        for file in product
        if "trainium_local" not in file.parts and not any(place.format(key=key) in f"/{file}" for place in OWN_PLACES)
    ]
    return [str(file) for file in shared if any(word.search(name) for name in names_in((ROOT / file).read_text()))]


@pytest.mark.parametrize(("key", "most"), [("pcs", 14), ("sagemaker", 12), ("eks", 10)])
def test_few_shared_files_name_an_engine(key: str, most: int) -> None:
    """Registries, the plan, and names that nodes share. Shared code asks an `Engine` for the rest."""
    assert len(naming_files(key)) <= most, naming_files(key)


def modules_loaded_by(module: str) -> set[str]:
    """The modules of this package that are loaded after an import in a new process."""
    program = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('trainium_')))"
    return set(subprocess.check_output([sys.executable, "-c", program], text=True).split())


def test_job_and_assessment_load_no_parts_that_they_do_not_use() -> None:
    """Among them the parts of `trn audit` and preflight: `trn assess` loads no engine, `trn run` one."""
    run, assess = map(modules_loaded_by, ("trainium_cli.jobs.run_command", "trainium_cli.evidence.assess_command"))
    assert not [name for name in assess if name.startswith("trainium_core.engines")]
    assert not [name for name in run if name.startswith(("trainium_core.audit", "trainium_core.preflight"))]
    assert not [name for name in run if re.match(r"trainium_core\.engines\.(pcs|sagemaker)\.(?!engine$)", name)]


def test_declaration_of_settings_does_not_import_the_plan() -> None:
    for file, modules in imports_of(CORE / "setting_schema").items():
        assert not [module for module in modules if module.startswith("trainium_core.plan")], file


def test_import_of_another_engine_is_found() -> None:
    relative = imported_names("trainium_core.engines.ec2.costs", "from ..pcs import costs", ())
    assert {engine_of(module) for module in relative} == {"pcs"}
    assert engine_of("trainium_core.engines.pcs.costs") == "pcs"
    assert engine_of("trainium_core.engines.registry") is None
