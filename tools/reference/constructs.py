"""The parameters of the names that `trainium_cdk` exports, from docstrings and signatures."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import trainium_cdk
from tools.reference.markdown import code, table, text

_PARAMETER = re.compile(r"^(?: {4})?(\w+(?:, \w+)*): ", re.MULTILINE)
_OMITTED = ("self", "scope", "construct_id")


def construct_parameters() -> str:
    return "\n\n".join(section for name in trainium_cdk.__all__ if (section := _section(name)))


def _section(name: str) -> str:
    construct: Any = getattr(trainium_cdk, name)
    rows = list(_parameters(construct))
    return f"## {name}\n\n{table(('parameter', 'meaning'), rows)}" if rows else ""


def _parameters(construct: Any) -> Iterator[tuple[str, str]]:
    """Each parameter that the docstring of the constructor or of the class describes, with its description."""
    signature = inspect.signature(construct.__init__).parameters
    names = [name for name in signature if name not in _OMITTED]
    described = dict(_described(f"{inspect.getdoc(construct)}\n\n{inspect.getdoc(construct.__init__) or ''}"))
    for name in names:
        if name in described:
            yield code(name), text(described[name])


def _described(docstring: str) -> Iterator[tuple[str, str]]:
    for paragraph in docstring.split("\n\n"):
        parts = _PARAMETER.split(paragraph)
        for names, meaning in zip(parts[1::2], parts[2::2], strict=True):
            for name in names.split(", "):
                yield name, meaning
