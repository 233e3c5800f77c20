"""Reads a code base and matches the rules, on all CPUs if the code base is large enough."""

import ast
import gc
import os
import re
import signal
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from io import StringIO
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import cast

from trainium_core.assess import manifests
from trainium_core.assess.findings import Assessment, FileFindings, Finding, Problem
from trainium_core.assess.listener import Located, handles_import_errors
from trainium_core.assess.matching import Imported, Matcher, file_rules, may_match, text_rules
from trainium_core.assess.project import ProjectFiles
from trainium_core.assess.resolver import Resolver
from trainium_core.assess.rules import LIBRARY_PREFIX, OPTIONAL_SUFFIX, Rule, libraries, normalised, rules
from trainium_core.assess.sources import (
    PythonSource,
    UnreadableError,
    decoded,
    files_of,
    is_lfs_pointer,
    kind_of,
    notebook_source,
    python_source,
    read_bytes,
)

SMALL_BYTES = 2_000_000
"""Code bases up to this size are read in this process, which is faster than starting others."""

IGNORE = re.compile(r"trn:\s*ignore(?:\[([\w\s,-]*)\])?[ \t]*(.*)")
_COMMENT = re.compile(r"(?:#|//).*")

Progress = Callable[[int, int], None]
"""Called with the number of files that were read, and of all files."""


def _no_progress(read: int, total: int) -> None: ...


def assess(paths: Sequence[Path], progress: Progress = _no_progress) -> Assessment:
    """Findings in files and folders.

    Raises OSError for a path that cannot be listed.
    """
    files = list(dict.fromkeys(file for given in paths for file in files_of(given)))
    project = project_of(files)
    sizes = sum(file.stat().st_size for file in files if kind_of(file) in ("python", "notebook"))
    found = list[FileFindings]()
    for one in _each(files, project, in_processes=sizes > SMALL_BYTES):
        found.append(one)
        progress(len(found), len(files))
    unknown = dict[str, str]()
    for one in found:
        for name, place in one.unknown.items():
            unknown.setdefault(name, place)
    return Assessment(
        files=len([one for one in found if not one.unreadable or one.lines]),
        lines=sum(one.lines for one in found),
        findings=sorted(each for one in found for each in one.findings),
        unreadable=[each for one in found for each in one.unreadable],
        comments=[each for one in found for each in one.comments],
        unknown=dict(sorted(unknown.items())),
    )


def project_of(files: Sequence[Path]) -> ProjectFiles:
    """The modules of the files, for questions of one module about another."""
    return ProjectFiles([file for file in files if kind_of(file) == "python"], _read_whole)


def _read_whole(path: Path, project: ProjectFiles) -> FileFindings:
    return _read(path, project, whole=True)


def _each(files: Sequence[Path], project: ProjectFiles, *, in_processes: bool) -> Iterator[FileFindings]:
    processes = os.cpu_count() or 1
    if not in_processes or processes == 1:
        yield from (assess_file(file, project) for file in files)
        return
    chunk = max(1, min(64, len(files) // (processes * 4)))
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (project,)) as pool:
        try:
            yield from pool.map(_assess_in_process, files, chunksize=chunk)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_project: ProjectFiles | None = None


def _begin(project: ProjectFiles) -> None:
    global _project
    gc.set_threshold(100_000)  # Syntax trees have many objects and no cycles: this saves a tenth of the time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C, and this process ends with it.
    Thread(target=_end_with_parent, daemon=True).start()
    _project = project


def _end_with_parent() -> None:
    """End this worker with its parent: a worker that waits for work would otherwise keep running."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _assess_in_process(file: Path) -> FileFindings:
    assert _project is not None
    return assess_file(file, _project)


def assess_file(path: Path, project: ProjectFiles) -> FileFindings:
    """The findings in one file."""
    return project.ahead.pop(path, None) or _read(path, project, whole=False)


def _read(path: Path, project: ProjectFiles, *, whole: bool) -> FileFindings:
    """The findings in one file. whole: read it even if no rule can match, because another module refers to it."""
    found = FileFindings()
    kind = kind_of(path) or "python"
    try:
        if kind == "weights":
            if is_lfs_pointer(path):
                _add(found, rules()["P07"], path, "", 1, 0, 0)
        elif kind in ("python", "notebook"):
            _assess_python(path, kind, project, found, whole=whole)
        else:
            _assess_text(path, kind, project, found)
    except UnreadableError as error:
        found.unreadable.append(Problem(path=str(path), line=error.line, message=str(error)))
    except OSError as error:
        found.unreadable.append(Problem(path=str(path), message=error.strerror or str(error)))
    return found


def _assess_python(path: Path, kind: str, project: ProjectFiles, found: FileFindings, *, whole: bool) -> None:
    content = read_bytes(path)
    source = notebook_source(content) if kind == "notebook" else python_source(content)
    found.unreadable += [Problem(path=str(path), line=line, message=message) for message, line in source.unreadable]
    found.lines = source.text.count("\n") + 1
    reported = list[tuple[Rule, Located]]()
    if whole or may_match(source.text):
        matcher = Matcher(source.text, lambda rule, node: reported.append((rule, node)))
        reader = Resolver(
            project.module_of(path),
            is_package=path.stem == "__init__",
            text=source.text,
            project=project,
            listener=matcher,
        )
        matcher.listen(reader)
        _with_deep_recursion(lambda: reader.read(source.tree))
        if kind == "python":
            project.remember(path, reader)
        imports = matcher.imports
    else:
        imports = list(_imports(source.tree.body))
    for name, node, optional in imports:
        if rule := _library(name, path, node.lineno, project, found, optional=optional):
            reported.append((rule, node))
    lines = _lines(source.text) if reported or "trn:" in source.text or path.name == "setup.py" else []
    for rule, node in reported:
        _add_node(found, rule, path, source, lines, node)
    for line, command in source.shell_lines:
        cell, number = source.place(line)
        _assess_line(found, path, command, number, "shell", project, cell)
    if path.name == "setup.py":
        _assess_setup(found, path, source, lines, project)
    _finish(found, path, lines if kind == "python" else [], source)


def _with_deep_recursion(read: Callable[[], None]) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    try:
        read()
    except RecursionError as error:
        raise UnreadableError("is nested too deeply") from error
    finally:
        sys.setrecursionlimit(limit)


def _imports(body: Sequence[ast.stmt], *, optional: bool = False) -> Iterator[Imported]:
    """The external modules that statements import, at any depth."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, statement, optional) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            if statement.module and not statement.level:
                yield from ((f"{statement.module}.{alias.name}", statement, optional) for alias in statement.names)
        else:
            is_tried = isinstance(statement, ast.Try | ast.TryStar) and handles_import_errors(statement)
            is_optional = optional or is_tried or isinstance(statement, ast.If)
            for field in ("body", "orelse", "finalbody"):
                inner: object = getattr(statement, field, None)
                if isinstance(inner, list):
                    yield from _imports(cast("list[ast.stmt]", inner), optional=is_optional)
            for handler in getattr(statement, "handlers", ()):
                yield from _imports(handler.body, optional=optional)


def _assess_text(path: Path, kind: str, project: ProjectFiles, found: FileFindings) -> None:
    text = decoded(read_bytes(path))
    lines = _lines(text)
    found.lines = len(lines)
    for rule in file_rules(path.name):
        _add(found, rule, path, lines[0] if lines else "", 1, 0, 0)
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("#"):
            _assess_line(found, path, line, number, kind, project)
    for one in manifests.requirements(text, kind):
        rule = libraries().by_distribution.get(normalised(one.name))
        line = lines[one.line - 1] if lines else ""
        if rule:
            _add(found, rule, path, line, one.line, one.column - 1, one.column - 1 + len(one.name))
        elif one.is_direct:
            _unknown(found, one.name, f"{path}:{one.line}", project)
    _finish(found, path, lines, None)


def _assess_line(
    found: FileFindings, path: Path, line: str, number: int, kind: str, project: ProjectFiles, cell: int = 0
) -> None:
    for rule, start, end in text_rules(line, kind):
        _add(found, rule, path, line, number, start, end, cell)
    if kind in ("shell", "docker"):
        for name, column in manifests.installed_by(line):
            if rule := libraries().by_distribution.get(normalised(name)):
                _add(found, rule, path, line, number, column, column + len(name), cell)
            else:
                _unknown(found, name, f"{path}:{number}", project)


def _assess_setup(
    found: FileFindings, path: Path, source: PythonSource, lines: Sequence[str], project: ProjectFiles
) -> None:
    """Match the requirements that setup() of setup.py contains as literals."""
    for call in ast.walk(source.tree):
        if not isinstance(call, ast.keyword) or call.arg not in (
            "install_requires",
            "extras_require",
            "setup_requires",
        ):
            continue
        for node in ast.walk(call.value):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = re.split(r"[^\w.-]", node.value.strip())[0]
                if rule := libraries().by_distribution.get(normalised(name)):
                    _add_node(found, rule, path, source, lines, node)
                elif name and isinstance(call.value, ast.List):
                    _unknown(found, name, f"{path}:{node.lineno}", project)


def _library(
    name: str, path: Path, line: int, project: ProjectFiles, found: FileFindings, *, optional: bool
) -> Rule | None:
    """The rule of an imported library. A library without a rule is recorded as unknown."""
    by_module = libraries().by_module
    root = name.partition(".")[0]
    if root in project.roots or root in sys.stdlib_module_names:
        return None
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if rule := by_module.get(".".join(parts[:length])):
            return libraries().optional[rule] if optional else rule
    _unknown(found, root, f"{path}:{line}", project)
    return None


def _unknown(found: FileFindings, name: str, place: str, project: ProjectFiles) -> None:
    module = name.replace("-", "_")
    known = libraries()
    name = normalised(name)
    is_known = name in known.neutral or name in known.by_distribution
    if not is_known and module not in project.roots and module not in sys.stdlib_module_names:
        found.unknown.setdefault(name, place)


def _add_node(
    found: FileFindings, rule: Rule, path: Path, source: PythonSource, lines: Sequence[str], node: Located
) -> None:
    line, end_line = node.lineno, node.end_lineno or node.lineno
    start = _characters(lines[line - 1], node.col_offset)
    end = _characters(lines[end_line - 1], node.end_col_offset or node.col_offset)
    cell, number = source.place(line)
    _add(found, rule, path, lines[line - 1], number, start, end, cell, number + end_line - line)


def _characters(line: str, offset: int) -> int:
    """A position in a line in characters; ast counts bytes."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))


def _add(
    found: FileFindings,
    rule: Rule,
    path: Path,
    code: str,
    line: int,
    start: int,
    end: int,
    cell: int = 0,
    end_line: int | None = None,
) -> None:
    found.findings.append(
        Finding(
            path=str(path),
            cell=cell,
            line=line,
            column=start + 1,
            end_line=end_line or line,
            end_column=end + 1,
            rule=rule.id,
            code=code.strip()[:200],
        )
    )


def _lines(text: str) -> list[str]:
    """Its lines as Python counts them."""
    return (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")


def _finish(found: FileFindings, path: Path, lines: Sequence[str], source: PythonSource | None) -> None:
    """One finding per rule and line, without covered ones, with ignored ones marked."""
    by_line = dict[tuple[int, int], dict[str, Finding]]()
    for one in sorted(found.findings):
        by_line.setdefault((one.cell, one.line), {}).setdefault(one.rule, one)
    comments = _comments(lines, source)
    used = set[int]()
    kept = list[Finding]()
    for here in by_line.values():
        covered = {name for rule in here for name in rules()[rule].covers}
        for name, one in here.items():
            if name in covered:
                continue
            for line in (one.line, one.end_line):
                names, reason = comments.get(line, ((), ""))
                if not one.cell and reason and name.removesuffix(OPTIONAL_SUFFIX).removeprefix(LIBRARY_PREFIX) in names:
                    used.add(line)
                    one = replace(one, reason=reason)
                    break
            kept.append(one)
    found.findings = kept
    for line, (names, reason) in comments.items():
        if not names or not reason:
            found.comments.append(Problem(path=str(path), line=line, message=FORM))
        elif line not in used:
            message = f"ignores nothing: no finding of {', '.join(names)} here"
            found.comments.append(Problem(path=str(path), line=line, message=message))


FORM = "ignores nothing: write the rule and a reason, such as `# trn: ignore[C03] runs on GPUs too`"


def _comments(lines: Sequence[str], source: PythonSource | None) -> dict[int, tuple[Sequence[str], str]]:
    """The comments that ignore findings, by line: the rules that they name, and the reason."""
    if not any("trn:" in line for line in lines):
        return {}
    found = dict[int, tuple[Sequence[str], str]]()
    for number, comment in _python_comments(source.text) if source else _text_comments(lines):
        if given := IGNORE.search(comment):
            names = [name.strip() for name in (given[1] or "").split(",") if name.strip()]
            found[number] = (names, given[2].strip())
    return found


def _python_comments(text: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):  # ast can read some files that tokenize cannot.
        return


def _text_comments(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if comment := _COMMENT.search(line):
            yield number, comment[0]
