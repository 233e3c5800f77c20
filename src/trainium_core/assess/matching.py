"""Matches the rules against the contents of modules and text files."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from trainium_core.assess import checks, kinds
from trainium_core.assess.listener import CallSite, Located
from trainium_core.assess.resolver import NameResolver
from trainium_core.assess.rules import CodeRule, Match, rules

LONGEST_STRING = 200
"""Maximum length of the strings that rules are matched against; longer strings are prose."""

Row = tuple[CodeRule, Match]
Imported = tuple[str, ast.Import | ast.ImportFrom, bool]
"""A name, the statement that imports it, and whether the import is optional."""

Report = Callable[[CodeRule, Located], None]


@dataclass
class Index:
    """The rules by what they match."""

    names: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    calls: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    methods: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    imports: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    keywords: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    checks: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    strings: list[tuple[re.Pattern[str], Row]] = field(default_factory=list[tuple[re.Pattern[str], Row]])
    environment: list[tuple[str, Row]] = field(default_factory=list[tuple[str, Row]])
    texts: list[tuple[re.Pattern[str], Row]] = field(default_factory=list[tuple[re.Pattern[str], Row]])
    files: list[tuple[str, Row]] = field(default_factory=list[tuple[str, Row]])


@cache
def index() -> Index:
    tables = Index()
    for rule in rules().values():
        for match in rule.matches:
            row = (rule, match)
            for table, keys in (
                (tables.names, match.names),
                (tables.calls, match.calls),
                (tables.methods, match.methods),
                (tables.imports, match.imports),
                (tables.keywords, match.keywords),
                (tables.checks, (match.check,) if match.check else ()),
            ):
                for key in keys:
                    table.setdefault(key, []).append(row)
            tables.environment += [(name, row) for name in match.environment]
            tables.files += [(name, row) for name in match.files]
            if match.strings:
                tables.strings.append((re.compile(match.strings), row))
            if match.text:
                tables.texts.append((re.compile(match.text), row))
    return tables


@cache
def _any_string() -> re.Pattern[str]:
    """A regular expression that matches each string that a rule matches."""
    return re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in index().strings))


@cache
def _roots() -> frozenset[str]:
    """First parts of all names that a rule matches."""
    return frozenset(name.partition(".")[0] for name in (*index().names, *index().calls))


@cache
def _words() -> Sequence[str]:
    """Words of which a Python file contains at least one if a rule can match.

    `padding` and `precision` do not count: code without torch, transformers or lightning uses them for other things.
    """
    words = {"torch", "cuda", "nccl", "nvidia", "flash_attention", "lightning", *_roots()}
    words |= {name.partition(".")[0] for name in index().imports} | set(index().keywords) - {"padding", "precision"}
    words |= {name.rstrip("*_") for name, _ in index().environment}
    return sorted(words - {"os"})


def may_match(text: str) -> bool:
    """Whether a rule can match in a Python file, except for the libraries that it imports."""
    return "torch" in text or any(word in text for word in _words())


@lru_cache(maxsize=20_000)
def _names(path: str) -> Sequence[Row]:
    return tuple(_below(index().names, path))


@lru_cache(maxsize=20_000)
def _calls(path: str) -> Sequence[Row]:
    return tuple(_below(index().calls, path))


def _below(table: dict[str, list[Row]], path: str) -> Iterable[Row]:
    """The rows of a name, and of wildcards such as `torch.*` that include it."""
    yield from table.get(path, ())
    parent = path.rpartition(".")[0]
    while parent:
        yield from table.get(f"{parent}.*", ())
        parent = parent.rpartition(".")[0]


_ENVIRONMENT_CALLS = frozenset(
    ("os.environ.get", "os.getenv", "os.environ.setdefault", "os.environ.pop", "os.putenv", "os.unsetenv")
)


_OF_MODULES = ("cuda", "half", "double")
"""Methods of every torch module, including modules that the project defines."""


class Matcher:
    """Listens to the resolver of a module, and reports what matches a rule."""

    def __init__(self, text: str, report: Report) -> None:
        self.text = text
        self.report = report
        self.has_torch = "torch" in text or "transformers" in text
        self.has_torch_xla = "torch_xla" in text
        self.imports: list[Imported] = []
        self.index = index()
        self.roots = _roots()
        self._reader: NameResolver | None = None
        self._found = dict[str, bool]()

    @property
    def reader(self) -> NameResolver:
        assert self._reader is not None
        return self._reader

    def listen(self, reader: NameResolver) -> None:
        self._reader = reader

    def imported(self, node: ast.Import | ast.ImportFrom, name: str, parts: Sequence[str]) -> None:
        for imported in (name, *(f"{name}.{part}" for part in parts)):
            self.imports.append((imported, node, bool(self.reader.place.optional)))
            above = imported
            while above:
                for row in self.index.imports.get(above, ()):
                    self._report(row, node)
                above = above.rpartition(".")[0]

    def name(self, node: ast.expr, path: str) -> None:
        if path.partition(".")[0] in self.roots:
            for row in _names(path):
                self._report(row, node)

    def call(self, site: CallSite) -> None:
        root, _, rest = site.path.partition(".")
        if root in self.roots:
            for row in _calls(site.path):
                self._report_call(row, site)
        elif root == "os" and site.path in _ENVIRONMENT_CALLS and site.node.args:
            self._environment(site.node.args[0])
        if site.method in self.index.methods and self.has_torch and self._may_be_tensor(site):
            for row in self.index.methods[site.method]:
                self._report_call(row, site)
        for keyword in site.keywords:
            for row in self.index.keywords.get(keyword, ()):
                fits = row[1].keywords[keyword]
                if re.fullmatch(fits, argument_text(site, keyword, None) or ""):
                    self._report_call(row, site)
        if self.has_torch:
            name = site.method or rest.rpartition(".")[2]
            for check in checks.CALL_CHECKS.get(name, ()):
                self._check(check, site)
            if name.endswith("_"):
                self._check(checks.slice_update, site)

    def string(self, node: ast.expr, text: str) -> None:
        if len(text) <= LONGEST_STRING and _any_string().fullmatch(text):
            for pattern, row in self.index.strings:
                if pattern.fullmatch(text):
                    self._report(row, node)

    def subscript(self, node: ast.Subscript, base: str, index: str) -> None:
        if base == "os.environ":
            self._environment(node.slice)
        elif self.has_torch:
            self._check(checks.slice_assignment, node, base, index)
            self._check(checks.boolean_mask, node, base, index)
            self._check(checks.data_slice, node, base, index)

    def operation(self, node: ast.BinOp, left: str, right: str) -> None:
        self._check(checks.right_shift, node, left, right)
        self._check(checks.integer_operation, node, left, right)

    def branch(self, node: ast.expr, value: str) -> None:
        if value in kinds.TENSORS:
            self._check(checks.tensor_branch, node, value)

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        if self.has_torch:
            self._check(checks.step_loop, node)
            if self.has_torch_xla:
                self._check(checks.unmarked_xla_loop, node)

    def _check(self, check: checks.Check, subject: Located | CallSite, *values: str) -> None:
        if check(self.reader, subject, *values):
            node = subject.node if isinstance(subject, CallSite) else subject
            for row in self.index.checks.get(check.__name__, ()):
                self._report(row, node)

    def _environment(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for pattern, row in self.index.environment:
                if fnmatchcase(node.value, pattern):
                    self._report(row, node)

    def _may_be_tensor(self, site: CallSite) -> bool:
        """Whether the object of a method call may be a tensor or a torch module."""
        receiver, owner = site.receiver, self.reader.place.owner
        if receiver in kinds.HOST_TENSORS:
            return site.method in _OF_MODULES
        if kinds.is_host(receiver):
            return False
        if receiver == kinds.SELF:
            return owner is not None and owner.is_module and site.method not in owner.methods
        is_torch = receiver.startswith("torch.") or site.method in _OF_MODULES
        return not receiver or receiver[0] == "<" or (receiver.endswith(")") and is_torch)

    def _report_call(self, row: Row, site: CallSite) -> None:
        match = row[1]
        for condition in match.arguments:
            text = argument_text(site, condition.name, condition.position)
            if text is None or not re.fullmatch(condition.fits, text):
                return
        if match.on_device and site.arguments and kinds.is_host(site.arguments[0]):
            return
        if match.fewer_arguments and len(site.node.args) >= match.fewer_arguments:
            return
        if match.absent and ("**" in site.keywords or any(name in site.keywords for name in match.absent)):
            return
        self._report(row, site.node)

    def _report(self, row: Row, node: Located) -> None:
        rule, match = row
        place = self.reader.place
        is_there = {
            "loop": place.loops,
            "forward": place.in_forward,
            "comparison": place.compared,
            "value": not place.compared,
            "device": not place.tables,
            "optional": place.optional,
            "required": not place.optional,
        }
        if match.place and not is_there[match.place]:
            return
        if match.unguarded and place.guarded:
            return
        if match.with_text and not self._has_text(match.with_text):
            return
        if match.unless_text and self._has_text(match.unless_text):
            return
        self.report(rule, node)

    def _has_text(self, pattern: str) -> bool:
        if pattern not in self._found:
            self._found[pattern] = re.search(pattern, self.text) is not None
        return self._found[pattern]


def argument_text(site: CallSite, name: str, position: int | None) -> str | None:
    """The literal of an argument, or the name that it resolves to; None if it is missing."""
    for keyword in site.node.keywords:
        if keyword.arg == name:
            return _text(keyword.value, site.keywords[name])
    if position is not None and position < len(site.node.args):
        return _text(site.node.args[position], site.arguments[position])
    return None


def _text(node: ast.expr, value: str) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.Tuple | ast.List):
        return ",".join(_text(elt, "") for elt in node.elts)
    return value


def text_rules(line: str, kind: str) -> Sequence[tuple[CodeRule, int, int]]:
    """The rules that match a line of a file of this kind, with the start and the end of the match in the line."""
    matches = list[tuple[CodeRule, int, int]]()
    for pattern, (rule, match) in index().texts:
        if kind in match.within and (at := pattern.search(line)):
            matches.append((rule, at.start(), at.end()))
    if kind in ("shell", "docker"):
        for at in _VARIABLE.finditer(line):
            matches += [
                (rule, at.start(1), at.end(1))
                for pattern, (rule, _) in index().environment
                if fnmatchcase(at[1], pattern)
            ]
    return matches


_VARIABLE = re.compile(r"(?:^|[\s;&|\"'])([A-Z][A-Z0-9_]{3,})=")


def file_rules(name: str) -> Sequence[CodeRule]:
    """The rules that match a file by its name."""
    return [rule for pattern, (rule, _) in index().files if fnmatchcase(name, pattern)]
