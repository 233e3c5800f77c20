"""Reads a code base and matches the rules, on all CPUs if the code base is large enough."""

import ast
import gc
import os
import re
import signal
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from io import StringIO
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import cast

from trainium_core.assess import manifests
from trainium_core.assess.findings import Assessment, CodeFinding, FileFindings, ReadingProblem
from trainium_core.assess.listener import Located, handles_import_errors, is_program_name
from trainium_core.assess.matching import Imported, Matcher, file_rules, may_match, text_rules
from trainium_core.assess.project import ProjectFiles, imported_files
from trainium_core.assess.resolver import NameResolver
from trainium_core.assess.rules import LIBRARY_PREFIX, OPTIONAL_SUFFIX, CodeRule, libraries, normalised, rules
from trainium_core.assess.sources import (
    PythonSource,
    UnreadableSourceError,
    decoded,
    file_kind,
    is_excluded,
    is_lfs_pointer,
    notebook_source,
    python_source,
    read_bytes,
    source_files,
    source_lines,
)

SMALL_BYTES = 2_000_000
"""Up to this total size of Python files and notebooks, one process reads all files: starting more takes longer."""

IGNORE = re.compile(r"trn:\s*ignore(?:\[([\w\s,-]*)\])?[ \t]*(.*)")
_COMMENT = re.compile(r"(?:#|//).*")
_SETUP_KEYWORDS = ("install_requires", "extras_require", "setup_requires")

Progress = Callable[[int, int], None]
"""Called with the number of files read so far, and the number of all files."""


def _no_progress(read: int, total: int) -> None: ...


def assess(paths: Sequence[Path], progress: Progress = _no_progress, exclude: Sequence[str] = ()) -> Assessment:
    """The findings in files and folders, and in the files of the code base that the given scripts import.

    Args:
        paths: The files and folders.
        progress: Called after each file.
        exclude: Globs of paths below the given ones, or of names of files and folders, that are not read.

    Raises:
        OSError: A path does not exist, or a folder cannot be listed.
    """
    scripts = [path for path in paths if path.is_file() and file_kind(path) in ("python", "notebook")]
    given = dict.fromkeys(file for path in paths for file in source_files(path, exclude))
    outside = dict.fromkeys(file for file in given if _leads_outside(file, paths))
    imported = (file for file in imported_files(scripts) if not is_excluded(file, exclude))
    files = list(dict.fromkeys((*(file for file in given if file not in outside), *imported)))
    project = read_project(files)
    size = sum(file.stat().st_size for file in files if file_kind(file) in ("python", "notebook"))
    results, late = list[FileFindings](), dict[str, list[CodeFinding]]()
    for result in _each(files, project, in_processes=size > SMALL_BYTES):
        results.append(result)
        for finding in result.late:
            late.setdefault(finding.path, []).append(finding)
        progress(len(results), len(files))
    findings, comments = list[CodeFinding](), list[ReadingProblem]()
    for result in results:
        kept, problems = _settled(result, late.get(result.path, ()))
        findings += kept
        comments += problems
    unknown = {name: place for result in reversed(results) for name, place in result.unknown.items()}
    return Assessment(
        files=sum(not result.unreadable or result.lines > 0 for result in results),
        lines=sum(result.lines for result in results),
        findings=sorted(findings),
        unreadable=[
            *(
                ReadingProblem(path=str(file), message="is a link to a file outside of the given paths")
                for file in outside
            ),
            *(problem for result in results for problem in result.unreadable),
        ],
        comments=comments,
        unknown=dict(sorted(unknown.items())),
    )


def _leads_outside(file: Path, paths: Sequence[Path]) -> bool:
    """Whether a file is a link to a file below none of the paths. Weights may be: no finding shows their content."""
    if not file.is_symlink() or file in paths or file_kind(file) == "weights":
        return False
    target = file.resolve()
    return not any(target.is_relative_to(path.resolve()) for path in paths)


def read_project(files: Sequence[Path]) -> ProjectFiles:
    """The Python modules among the files, which may import each other."""
    return ProjectFiles([file for file in files if file_kind(file) == "python"], _read_whole)


def _read_whole(path: Path, project: ProjectFiles) -> FileFindings:
    return _FileReader(path, project).read(whole=True)


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C. This process ends with the parent.
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
    result = project.read_early.pop(path, None) or _FileReader(path, project).read(whole=False)
    result.late, project.late = project.late, []
    return result


class _FileReader:
    """Collects the findings in one file."""

    def __init__(self, path: Path, project: ProjectFiles) -> None:
        self._path, self._project = path, project
        self._findings = FileFindings(path=str(path))

    def read(self, *, whole: bool) -> FileFindings:
        """Read the file.

        Args:
            whole: Whether to resolve names even if no rule can match, because another module imports this one.
        """
        path, findings = self._path, self._findings
        kind = file_kind(path) or "python"
        try:
            if kind == "weights":
                if is_lfs_pointer(path):
                    self._add(rules()["P07"], "", 1, 0, 0)
            elif kind in ("python", "notebook"):
                self._read_python(kind, whole=whole)
            else:
                self._read_text(kind)
        except UnreadableSourceError as error:
            findings.unreadable.append(ReadingProblem(path=str(path), line=error.line, message=str(error)))
        except OSError as error:
            findings.unreadable.append(ReadingProblem(path=str(path), message=error.strerror or str(error)))
        return findings

    def _read_python(self, kind: str, *, whole: bool) -> None:
        path, project = self._path, self._project
        content = read_bytes(path)
        source = notebook_source(content) if kind == "notebook" else python_source(content)
        self._findings.unreadable += [
            ReadingProblem(path=str(path), line=line, message=message) for message, line in source.unreadable
        ]
        self._findings.lines = source.text.count("\n") + 1
        reported = list[tuple[CodeRule, Located]]()
        is_read = False
        if whole or may_match(source.text):
            text = source.text

            def report(rule: CodeRule, node: Located) -> None:
                if is_read:  # `text` is kept for such findings, but neither the tree nor a list of lines.
                    project.late.append(self._node_finding(rule, source_lines(text), node))
                else:
                    reported.append((rule, node))

            matcher = Matcher(source.text, report)
            resolver = NameResolver(
                project.file_module(path),
                is_package=path.stem == "__init__",
                text=source.text,
                project=project,
                listener=matcher,
            )
            matcher.listen(resolver)
            _with_deep_recursion(lambda: resolver.read(source.tree))
            is_read = True
            if kind == "python":
                project.remember(path, resolver)
            imports = matcher.imports
        else:
            imports = list(_imports(source.tree.body))
        for name, node, optional in imports:
            if rule := self._library(name, node.lineno, optional=optional):
                reported.append((rule, node))
        lines = source_lines(source.text) if reported or "trn:" in source.text or path.name == "setup.py" else []
        self._findings.findings += [self._node_finding(rule, lines, node, source) for rule, node in reported]
        for line, command in source.shell_lines:
            cell, number = source.place(line)
            self._read_line(command, number, "shell", cell)
        if path.name == "setup.py":
            self._read_setup(source, lines)
        self._findings.comments = _comments(lines if kind == "python" else [], source)

    def _read_text(self, kind: str) -> None:
        text = decoded(read_bytes(self._path))
        lines = source_lines(text)
        self._findings.lines = len(lines)
        for rule in file_rules(self._path.name):
            self._add(rule, lines[0] if lines else "", 1, 0, 0)
        for number, line in enumerate(lines, 1):
            if not line.lstrip().startswith("#"):
                self._read_line(line, number, kind)
        for requirement in manifests.requirements(text, kind):
            rule = libraries().by_distribution.get(normalised(requirement.name))
            line, start = lines[requirement.line - 1] if lines else "", requirement.column - 1
            if rule:
                self._add(rule, line, requirement.line, start, start + len(requirement.name))
            elif requirement.is_direct:
                self._add_unknown(requirement.name, requirement.line)
        self._findings.comments = _comments(lines, None)

    def _read_line(self, line: str, number: int, kind: str, cell: int = 0) -> None:
        for rule, start, end in text_rules(line, kind):
            self._add(rule, line, number, start, end, cell)
        if kind in ("shell", "docker"):
            for name, column in manifests.installed_by(line):
                if rule := libraries().by_distribution.get(normalised(name)):
                    self._add(rule, line, number, column, column + len(name), cell)
                else:
                    self._add_unknown(name, number)

    def _read_setup(self, source: PythonSource, lines: Sequence[str]) -> None:
        """Match the requirements that setup() of setup.py contains as literals."""
        for keyword in ast.walk(source.tree):
            if not isinstance(keyword, ast.keyword) or keyword.arg not in _SETUP_KEYWORDS:
                continue
            for node in ast.walk(keyword.value):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    name = re.split(r"[^\w.-]", node.value.strip())[0]
                    if rule := libraries().by_distribution.get(normalised(name)):
                        self._findings.findings.append(self._node_finding(rule, lines, node, source))
                    elif name and isinstance(keyword.value, ast.List):
                        self._add_unknown(name, node.lineno)

    def _library(self, name: str, line: int, *, optional: bool) -> CodeRule | None:
        """The rule of an imported library. A library that libraries.toml does not name is recorded as unknown."""
        by_module = libraries().by_module
        parts = name.split(".")
        if parts[0] in self._project.roots or parts[0] in sys.stdlib_module_names:
            return None
        for length in range(len(parts), 0, -1):
            if rule := by_module.get(".".join(parts[:length])):
                return libraries().optional[rule] if optional else rule
        self._add_unknown(parts[0], line)
        return None

    def _add_unknown(self, name: str, line: int) -> None:
        module = name.replace("-", "_")
        known = libraries()
        name = normalised(name)
        is_known = name in known.neutral or name in known.by_distribution
        if not is_known and module not in self._project.roots and module not in sys.stdlib_module_names:
            self._findings.unknown.setdefault(name, f"{self._path}:{line}")

    def _node_finding(
        self, rule: CodeRule, lines: Sequence[str], node: Located, source: PythonSource | None = None
    ) -> CodeFinding:
        line, end_line = node.lineno, node.end_lineno or node.lineno
        start = _characters(lines[line - 1], node.col_offset)
        end = _characters(lines[end_line - 1], node.end_col_offset or node.col_offset)
        cell, number = source.place(line) if source else (0, line)
        return self._finding(rule, lines[line - 1], number, start, end, cell, number + end_line - line)

    def _add(self, rule: CodeRule, code: str, line: int, start: int, end: int, cell: int = 0) -> None:
        self._findings.findings.append(self._finding(rule, code, line, start, end, cell, line))

    def _finding(
        self, rule: CodeRule, code: str, line: int, start: int, end: int, cell: int, end_line: int
    ) -> CodeFinding:
        return CodeFinding(
            path=str(self._path),
            cell=cell,
            line=line,
            column=start + 1,
            end_line=end_line,
            end_column=end + 1,
            rule=rule.id,
            code=code.strip()[:200],
        )


def _settled(
    result: FileFindings, late: Iterable[CodeFinding]
) -> tuple[Sequence[CodeFinding], Sequence[ReadingProblem]]:
    """One finding for each rule and line of a file, without covered ones, and the comments that ignore nothing."""
    by_line = dict[tuple[int, int], dict[str, CodeFinding]]()
    for finding in sorted((*result.findings, *late)):
        by_line.setdefault((finding.cell, finding.line), {}).setdefault(finding.rule, finding)
    used, findings = set[int](), list[CodeFinding]()
    for by_rule in by_line.values():
        covered = {name for rule in by_rule for name in rules()[rule].covers}
        for rule, finding in by_rule.items():
            if rule not in covered:
                line = _ignored_by(finding, result.comments)
                used.add(line)
                findings.append(replace(finding, reason=result.comments[line][1] if line else ""))
    problems = list[ReadingProblem]()
    for line, (names, reason) in result.comments.items():
        if not names or not reason:
            problems.append(ReadingProblem(path=result.path, line=line, message=FORM))
        elif line not in used:
            message = f"ignores nothing: no finding of {', '.join(names)} here"
            problems.append(ReadingProblem(path=result.path, line=line, message=message))
    return findings, problems


def _ignored_by(finding: CodeFinding, comments: Mapping[int, tuple[Sequence[str], str]]) -> int:
    """The line of the comment that ignores a finding; 0 if there is none. Comments in notebooks have no effect."""
    name = finding.rule.removesuffix(OPTIONAL_SUFFIX).removeprefix(LIBRARY_PREFIX)
    for line in () if finding.cell else (finding.line, finding.end_line):
        names, reason = comments.get(line, ((), ""))
        if reason and name in names:
            return line
    return 0


def _with_deep_recursion(read: Callable[[], None]) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    try:
        read()
    except RecursionError as error:
        raise UnreadableSourceError("is nested too deeply") from error
    finally:
        sys.setrecursionlimit(limit)


def _imports(body: Sequence[ast.stmt], *, optional: bool = False) -> Iterator[Imported]:
    """The names that statements import, at any depth, without relative imports."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, statement, optional) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            if statement.module and not statement.level:
                yield from ((f"{statement.module}.{alias.name}", statement, optional) for alias in statement.names)
        else:
            is_tried = isinstance(statement, ast.Try | ast.TryStar) and handles_import_errors(statement)
            is_conditional = optional or (isinstance(statement, ast.If) and not is_program_name(statement))
            for field in ("body", "orelse", "finalbody"):
                inner: object = getattr(statement, field, None)
                if isinstance(inner, list):
                    is_optional = is_conditional or (is_tried and field == "body")
                    yield from _imports(cast("list[ast.stmt]", inner), optional=is_optional)
            for handler in getattr(statement, "handlers", ()):
                yield from _imports(handler.body, optional=optional)
            for case in getattr(statement, "cases", ()):
                yield from _imports(case.body, optional=optional)


def _characters(line: str, offset: int) -> int:
    """A position in a line in characters; ast counts bytes."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))


FORM = "ignores nothing: write the rule and a reason, such as `# trn: ignore[C03] runs on GPUs too`"


def _comments(lines: Sequence[str], source: PythonSource | None) -> dict[int, tuple[Sequence[str], str]]:
    """The comments that ignore findings, by line: the rules that they name, and the reason."""
    if not any("trn:" in line for line in lines):
        return {}
    comments = dict[int, tuple[Sequence[str], str]]()
    for number, comment in _python_comments(source.text) if source else _text_comments(lines):
        if ignore := IGNORE.search(comment):
            names = [name.strip() for name in (ignore[1] or "").split(",") if name.strip()]
            comments[number] = (names, ignore[2].strip())
    return comments


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
