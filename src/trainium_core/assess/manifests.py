"""The libraries that a code base requires, from requirements, project and lock files, and from install commands."""

import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trainium_core.assess.sources import FILES, UnreadableSourceError, source_lines

_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
_WORD = re.compile(r"[\w.-]+")
_URL_NAME = re.compile(r"(?:git\+|https?://).*?/([\w.-]+?)(?:\.git)?(?:@[\w./-]+)?(?:#.*)?$")
_INSTALLS = re.compile(r"(?:\b(?:pip[\d.]*|conda|mamba)\s+install|\buv\s+add)\s+(.*)")
_END = re.compile(r"&&|\||;|\s(?:#|&|[12]?>(?!=))")
"""The end of a command's arguments, including a pipe or a redirection."""


@dataclass(frozen=True)
class Requirement:
    """A library by its distribution name.

    Attributes:
        line: Line of the name, from 1.
        column: Column of the name, from 1.
        is_direct: Whether the project itself names the library; False in a lock file.
    """

    name: str
    line: int
    column: int
    is_direct: bool = True


def requirements(text: str, kind: str) -> Iterator[Requirement]:
    """The libraries that a file names.

    Args:
        text: The content of the file.
        kind: Its kind, from `file_kind`. Kinds other than requirements, conda, pyproject, lock and setup.cfg have none.

    Raises:
        UnreadableSourceError: The content is not valid for this kind.
    """
    if kind == "requirements":
        for number, line in enumerate(source_lines(text), 1):
            if requirement := _line_requirement(line):
                yield Requirement(requirement, number, line.find(requirement) + 1)
    elif kind == "conda":
        section = ""
        for number, line in enumerate(source_lines(text), 1):
            if key := re.match(r"([\w-]+):", line):
                section = key[1]
            if section != "dependencies":  # Such as channels.
                continue
            item = re.match(r"\s*-\s+(?:[\w-]+::)?([A-Za-z0-9][\w.+/:@-]*)", line)
            if item and (requirement := _line_requirement(line.split("-", 1)[1].rpartition("::")[2].strip(" \"'"))):
                yield Requirement(requirement, number, max(line.find(requirement), 0) + 1)
    elif kind in ("pyproject", "lock"):
        names = _locked_requirements(text) if kind == "lock" else _document_requirements(text)
        yield from _placed(names, text, is_direct=kind != "lock")
    elif kind == "setup.cfg":
        yield from _setup_cfg_requirements(text)


def installed_by(line: str) -> Iterator[tuple[str, int]]:
    """The libraries that a pip, uv, conda or mamba command in a line of shell installs, with their columns from 0."""
    command = _INSTALLS.search(line)
    if not command:
        return
    words = re.finditer(r"[^\s;&|\"'\\]+", _END.split(command[1])[0])
    skips = False
    for word in words:
        if skips or word[0].startswith("-"):
            skips = not skips and (
                word[0] in FILES["options_with_value"] or re.fullmatch(r"-\w*r", word[0]) is not None
            )
            continue
        package = word[0].rpartition("::")[2]  # Without conda's channel.
        if (name := _line_requirement(package)) and "$" not in package and not package.startswith("."):
            yield name, command.start(1) + word.end() - len(package)


def _line_requirement(line: str) -> str:
    """The name in a line of requirements; empty for a comment, a path, or an option other than --editable."""
    line = re.sub(r"^\s*(-e|--editable)[\s=]+", "", re.split(r"(?:^|\s)#", line)[0]).strip()
    if line.startswith(("git+", "http://", "https://")):
        egg = re.search(r"#egg=([\w.-]+)", line)
        url = _URL_NAME.match(line)
        return egg[1] if egg else _wheel_requirement(url[1]) if url else ""
    if line.startswith(("-", ".", "/")):
        return ""
    match = _NAME.match(line)
    return match[0] if match and "/" not in line.split("@")[0].split(";")[0] else ""


def _wheel_requirement(name: str) -> str:
    return name.split("-")[0] if name.endswith((".whl", ".gz", ".zip")) else name


def _placed(names: Iterable[str], text: str, *, is_direct: bool) -> Iterator[Requirement]:
    """Each name once, at its first place in the text."""
    places = dict[str, tuple[int, int]]()
    for number, line in enumerate(source_lines(text), 1):
        for word in _WORD.finditer(line):
            places.setdefault(word[0], (number, word.start() + 1))
    for name in dict.fromkeys(names):
        yield Requirement(name, *places.get(name, (1, 1)), is_direct)


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise UnreadableSourceError(f"is not TOML: {error}") from error
    except RecursionError as error:
        raise UnreadableSourceError("is nested too deeply") from error


def _document_requirements(text: str) -> Iterator[str]:
    """The names in pyproject.toml or Pipfile."""
    document = _toml(text)
    project, tool = _table(document, "project"), _table(document, "tool")
    lists = [project.get("dependencies"), _table(document, "build-system").get("requires")]
    lists += _table(project, "optional-dependencies").values()
    lists += _table(document, "dependency-groups").values()
    for dependencies in lists:
        if isinstance(dependencies, list):
            texts = [each for each in cast("list[object]", dependencies) if isinstance(each, str)]
            yield from filter(None, map(_line_requirement, texts))
    poetry = _table(tool, "poetry")
    groups = [_table(group, "dependencies") for group in _tables(_table(poetry, "group"))]
    for table in (
        _table(poetry, "dependencies"),
        _table(poetry, "dev-dependencies"),
        *groups,
        _table(document, "packages"),
        _table(document, "dev-packages"),
    ):
        yield from (name for name in table if name != "python")


def _locked_requirements(text: str) -> Iterator[str]:
    if text.lstrip().startswith("{"):  # Pipfile.lock.
        try:
            document: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnreadableSourceError("is not JSON") from error
        for section in ("default", "develop"):
            yield from _table(document, section)
        return
    packages = _toml(text).get("package")
    for package in cast("list[object]", packages) if isinstance(packages, list) else []:
        name = _table({"row": package}, "row").get("name")
        if isinstance(name, str):
            yield name


def _setup_cfg_requirements(text: str) -> Iterator[Requirement]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise UnreadableSourceError(f"is not a configuration file: {error.message.splitlines()[0]}") from error
    requirement_lines = str(parser.get("options", "install_requires", fallback="")).splitlines()
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            requirement_lines += value.splitlines()
    yield from _placed(filter(None, map(_line_requirement, requirement_lines)), text, is_direct=True)


def _table(parent: object, key: str) -> Mapping[str, Any]:
    value = cast("dict[str, Any]", parent).get(key) if isinstance(parent, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _tables(parent: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in parent:
        yield _table(parent, key)
