"""Finds what the rules match in one file: code, notebooks, manifests, shell scripts and weights."""

import ast
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import cast

from trainium_core.assess import manifests
from trainium_core.assess.findings import CodeFinding, FileFindings, ReadingProblem
from trainium_core.assess.listener import Located, handles_import_errors, is_program_name
from trainium_core.assess.matching import Imported, Matcher, file_rules, may_match, text_rules
from trainium_core.assess.project import ProjectFiles
from trainium_core.assess.resolver import NameResolver
from trainium_core.assess.rules import CodeRule, libraries, normalised, rules
from trainium_core.assess.sources import (
    PythonSource,
    UnreadableSourceError,
    decoded,
    file_kind,
    is_lfs_pointer,
    notebook_source,
    python_source,
    read_bytes,
    source_lines,
)

IGNORE = re.compile(r"trn:\s*ignore(?:\[([\w\s,-]*)\])?[ \t]*(.*)")
_COMMENT = re.compile(r"(?:#|//).*")
_SETUP_KEYWORDS = ("install_requires", "extras_require", "setup_requires")


class FileReader:
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
            _with_deep_recursion(lambda: resolver.read(source.tree, whole=project.owns(path)))
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


def _comments(lines: Sequence[str], source: PythonSource | None) -> dict[int, tuple[Sequence[str], str]]:
    """The comments that ignore findings, by line: the rules that they name, and the reason."""
    if "trn:" not in "\n".join(lines):
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
