"""The modules of a code base, and the results of their functions."""

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from trainium_core.assess import kinds
from trainium_core.assess.findings import CodeFinding, FileFindings
from trainium_core.assess.listener import CallSite, CodePlace
from trainium_core.assess.resolver import NameResolver
from trainium_core.assess.sources import UnreadableSourceError, file_kind, notebook_source, python_source, read_bytes


class Summary:
    """A module that was read.

    Attributes:
        functions: Its functions, without methods.
        classes: Its classes, and whether each derives from torch.nn.Module.
        names: The values of its global names.
        star_imports: The modules from which it imports all names.
    """

    def __init__(self, resolver: NameResolver) -> None:
        self.classes = {path: cls.is_module for path, cls in resolver.classes.items()}
        self.names = dict(resolver.globals)
        self.star_imports = resolver.star_imports
        # The syntax trees of methods, most of a tree, are not kept: only a class calls its methods.
        for cls in resolver.classes.values():
            cls.methods = {}
        self.functions = {path: function for path, function in resolver.functions.items() if not function.is_method}
        resolver.functions = self.functions
        self.read_function = resolver.read_function


class ProjectFiles:
    """The Python files of a code base, by every name that they can be imported by.

    Attributes:
        read_early: The findings in files that were read early because another file imports them.
        own: The files whose findings are wanted; None: all. Of others, only what the wanted ones use is read.
        late: Findings in functions that were read again because another file calls them.
        roots: First parts of all names that a file can be imported by.
    """

    def __init__(self, files: Sequence[Path], read: Callable[[Path, "ProjectFiles"], FileFindings]) -> None:
        self._read = read
        self.read_early = dict[Path, FileFindings]()
        self.own: frozenset[Path] | None = None
        self.late = list[CodeFinding]()
        self._root = Path(os.path.commonpath([file.absolute().parent for file in files])) if files else Path()
        self._files = dict[str, Path]()
        self._names = dict[Path, str]()
        self._ambiguous = set[str]()
        self._summaries = dict[Path, Summary | None]()
        self.roots = set[str]()
        for file in files:
            self._add(file)

    def _add(self, file: Path) -> None:
        module = self._names[file] = self._module(file)
        parts = module.split(".")
        for first in range(len(parts)):
            name = ".".join(parts[first:])
            self.roots.add(parts[first])
            if name in self._files:
                self._ambiguous.add(name)
            self._files.setdefault(name, file)

    def file_module(self, file: Path) -> str:
        """The module name of a file, relative to the folder that contains all files."""
        return self._names.get(file) or self._module(file)

    def _module(self, file: Path) -> str:
        parts = (
            file.absolute().parent.relative_to(self._root).parts if file.absolute().is_relative_to(self._root) else ()
        )
        return ".".join([*parts, *([] if file.stem == "__init__" else [file.stem])]) or "__init__"

    def call_result(self, site: CallSite, place: CodePlace) -> str:
        summary, name = self._find(site.path)
        if summary is None:
            return kinds.UNKNOWN
        if name in summary.classes:
            return f"{site.path}()"
        return summary.read_function(summary.functions[name], site, place)

    def global_value(self, module: str, name: str) -> str:
        waiting, known = [module], set[str]()
        while waiting:
            module = waiting.pop(0)
            if module in known or module.partition(".")[0] not in self.roots:
                continue
            known.add(module)
            if summary := self.summary(module):
                if value := summary.names.get(name):
                    return value
                waiting += summary.star_imports
        return kinds.UNKNOWN

    def is_module_class(self, path: str) -> bool:
        summary, name = self._find(path)
        return bool(summary and summary.classes.get(name))

    def _find(self, path: str) -> tuple[Summary | None, str]:
        """The summary of the module that a name belongs to, and the name in it; follows the module's own imports."""
        for _ in range(4):
            module, _, name = path.rpartition(".")
            if module.partition(".")[0] not in self.roots:
                break
            summary = self.summary(module)
            if summary is None:
                break
            own = f"{self.file_module(self._files[module])}.{name}"
            if own in summary.classes or own in summary.functions:
                return summary, own
            path = self.global_value(module, name)
        return None, ""

    def summary(self, module: str) -> Summary | None:
        """The summary of a module; None if it is not in the project, ambiguous, unreadable, or being read."""
        if module in self._ambiguous or module not in self._files:
            return None
        file = self._files[module]
        if file not in self._summaries:
            self._summaries[file] = None
            findings = self._read(file, self)
            if self.owns(file):
                self.read_early[file] = findings
        return self._summaries[file]

    def owns(self, file: Path) -> bool:
        return self.own is None or file in self.own

    def remember(self, file: Path, resolver: NameResolver) -> None:
        """Store the results of reading a file, for the modules that import it."""
        self._summaries[file] = Summary(resolver)


_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""Files and folders in the root of a code base."""


def imported_files(scripts: Iterable[Path]) -> Iterator[Path]:
    """The files of the code base that scripts and notebooks import, and those that these files import.

    The modules are searched for in the folder of the script, and in the root of its code base.
    """
    for script in scripts:
        folder = script.absolute().parent
        root = next(
            (each for each in (folder, *folder.parents) if any((each / name).exists() for name in _ROOTS)), folder
        )
        waiting, known = [script.absolute()], {script.absolute()}
        while waiting:
            for file in _imports(waiting.pop(), (folder, root, root / "src")):
                if file not in known and file.resolve().is_relative_to(root.resolve()):
                    known.add(file)
                    waiting.append(file)
                    yield file if script.is_absolute() else Path(os.path.relpath(file))


def _imports(file: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """The files that a file imports, including the `__init__.py` of each package."""
    try:
        content = read_bytes(file)
        tree = (notebook_source(content) if file_kind(file) == "notebook" else python_source(content)).tree
    except UnreadableSourceError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names, places = [alias.name for alias in node.names], folders
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module}." if node.module else ""
            names = [f"{module}{alias.name}" for alias in node.names]
            places = [file.parents[node.level - 1]] if 0 < node.level <= len(file.parents) else folders
        else:
            continue
        for name in names:
            yield from next(filter(None, (_module_files(place, name.split(".")) for place in places)), ())


def _module_files(folder: Path, parts: Sequence[str]) -> Sequence[Path]:
    """The files of a module below a folder, its packages first; the last part may be a name in the module."""
    files = list[Path]()
    for part in parts:
        package, module = folder / part, folder / f"{part}.py"
        if (package / "__init__.py").is_file():
            files.append(package / "__init__.py")
        elif module.is_file():
            return [*files, module]
        elif not package.is_dir():
            break
        folder = package
    return files
