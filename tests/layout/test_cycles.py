"""There are no import cycles within a package, and none between the folders of trainium_core except `engines`."""

import ast
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.layout.imported_names import imported_names, module_name
from tests.layout.repository import PACKAGES, ROOT, python_files
from tests.layout.test_engines import ENGINES as ENGINE_FOLDERS

NODE = "trainium_userdata.node."
"""Prefix of the node programs in this repository. On a node, and therefore in their imports, they are top-level."""


def imports(name: str, source: str, known: Collection[str]) -> Iterator[str]:
    """The known modules that a module imports, including imports in functions and TYPE_CHECKING blocks."""
    for imported in imported_names(name, source, known):
        yield from [one for one in (imported, f"{NODE}{imported}") if one in known][:1]


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
    return cycle_of(
        {
            name: {each for imported in imports(name, source, sources) for each in run_first(name, imported)}
            for name, source in sources.items()
        }
    )


def cycle_of(graph: Mapping[str, Collection[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def folder_of(name: str) -> str:
    """The folder or top-level module of trainium_core that a module belongs to; empty for the package itself."""
    return name.split(".")[1] if "." in name else ""


def folder_cycle(sources: Mapping[str, str]) -> list[str]:
    """Folders that import each other in a cycle, with the first repeated at the end; empty if there is none.

    Leaves out `engines`: other folders import its registry, and the engines import them.
    """
    graph = {folder_of(name): set[str]() for name in sources}
    for name, source in sources.items():
        graph[folder_of(name)] |= {folder_of(imported) for imported in imports(name, source, sources)}
    left_out = {"", "engines"}
    return cycle_of({folder: graph[folder] - {folder} - left_out for folder in graph.keys() - left_out})


ENGINE_MODULES = ("trainium_core.engines.engine", *(f"trainium_core.engines.{key}.engine" for key in ENGINE_FOLDERS))
"""Modules whose methods import the parts of an engine when an operation asks for them: these imports do not count."""


def imported_at_once(source: str) -> str:
    """The imports of a module outside of functions and TYPE_CHECKING blocks."""
    return "\n".join(
        ast.unparse(node) for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)
    )


@pytest.mark.parametrize("folder", PACKAGES.values(), ids=str)
def test_modules_have_no_import_cycle(folder: Path) -> None:
    files = [file for file in python_files() if file.is_relative_to(folder)]
    sources = {module_name(file): (ROOT / file).read_text() for file in files}
    late = {name: imported_at_once(source) for name, source in sources.items() if name in ENGINE_MODULES}
    assert cycle({**sources, **late}) == []


def test_folders_of_core_have_no_import_cycle() -> None:
    files = [file for file in python_files() if file.is_relative_to("src/trainium_core")]
    assert folder_cycle({module_name(file): (ROOT / file).read_text() for file in files}) == []


def test_cycle_of_folders_is_found() -> None:
    sources = {
        "trainium_core.plan": "",
        "trainium_core.plan.node": "from trainium_core.nodes.checks import CHECKS",
        "trainium_core.nodes.checks": "",
        "trainium_core.nodes.report": "from trainium_core.plan import Plan",
    }
    assert set(folder_cycle(sources)) == {"plan", "nodes"}


def test_cycle_with_a_deferred_import_is_found() -> None:
    sources = {"plan": "def check():\n    from rules import broken", "rules": "import plan", "other": "import plan"}
    assert set(cycle(sources)) == {"plan", "rules"}


@pytest.mark.parametrize(
    ("importing_y", "importing_x"),
    [
        ("from .y import b", "from .x import a"),
        ("from . import y", "from p import x"),
        ("import p.y", "from ..p.x import a"),
        ("from p.y import b", "def check():\n    from .x import a"),
    ],
)
def test_cycle_of_any_form_of_import_is_found(importing_y: str, importing_x: str) -> None:
    assert set(cycle({"p": "", "p.x": importing_y, "p.y": importing_x})) == {"p.x", "p.y"}


def test_cycle_of_node_programs_is_found() -> None:
    first, second = f"{NODE}trn_job.attempt", f"{NODE}trn_node.watch"
    assert set(cycle({first: "from trn_node.watch import NOTICE", second: "from trn_job import attempt"})) == {
        first,
        second,
    }
