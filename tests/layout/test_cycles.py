"""There are no import cycles within a package, and none between the folders of trainium_core."""

import ast
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.layout.repository import PACKAGES, ROOT, python_files


def module_name(file: Path) -> str:
    """The name under which a file of a source root is imported."""
    parts = file.relative_to(file.parts[0]).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, known: Collection[str]) -> Iterator[str]:
    """The known modules that a source imports, including imports in functions and TYPE_CHECKING blocks."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in known else node.module


def run_first(module: str, imported: str) -> Iterator[str]:
    """The modules that are imported before `module` continues: its imports, and their packages unless `module` is in
    them.
    """
    parts = imported.split(".")
    for package in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
        if module != package and not module.startswith(f"{package}."):
            yield package


def cycle(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other in a cycle, with the first repeated at the end; empty if there is none."""
    graph = {
        name: {each for imported in imports(source, sources) for each in run_first(name, imported)}
        for name, source in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def folders(sources: Mapping[str, str]) -> dict[str, str]:
    """The combined sources of each folder of trainium_core except `engines`, which has modules of several levels."""
    together = dict[str, str]()
    for name, source in sources.items():
        parts = name.split(".")
        if len(parts) > 1 and parts[1] != "engines":
            together[parts[1]] = f"{together.get(parts[1], '')}\n{source}"
    return together


def folder_imports(source: str, known: Collection[str]) -> set[str]:
    modules = (node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module)
    parts = [module.split(".") for module in modules if module.startswith("trainium_core.")]
    return {folder for _, folder, *_ in parts if folder in known}


def folder_cycle(sources: Mapping[str, str]) -> list[str]:
    """Folders that import each other in a cycle, with the first repeated at the end; empty if there is none."""
    together = folders(sources)
    try:
        TopologicalSorter(
            {folder: folder_imports(text, together) - {folder} for folder, text in together.items()}
        ).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@pytest.mark.parametrize("folder", PACKAGES.values(), ids=str)
def test_modules_have_no_import_cycle(folder: Path) -> None:
    files = [file for file in python_files() if file.is_relative_to(folder)]
    assert cycle({module_name(file): (ROOT / file).read_text() for file in files}) == []


def test_folders_of_core_have_no_import_cycle() -> None:
    files = [file for file in python_files() if file.is_relative_to("src/trainium_core")]
    assert folder_cycle({module_name(file): (ROOT / file).read_text() for file in files}) == []


def test_cycle_of_folders_is_found() -> None:
    sources = {
        "trainium_core.plan.node": "from trainium_core.nodes.checks import CHECKS",
        "trainium_core.nodes.checks": "",
        "trainium_core.nodes.report": "from trainium_core.plan import Plan",
    }
    assert set(folder_cycle(sources)) == {"plan", "nodes"}


def test_cycle_with_a_deferred_import_is_found() -> None:
    sources = {"plan": "def check():\n    from rules import broken", "rules": "import plan", "other": "import plan"}
    assert set(cycle(sources)) == {"plan", "rules"}
