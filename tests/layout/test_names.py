"""One name has one meaning in the product's code."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.layout.repository import ROOT, python_files

PRODUCT = ("src", "constructs", "userdata", "stacks")


def definitions(*kinds: type[ast.AST]) -> list[tuple[str, Path]]:
    """Name and file of each definition of these kinds."""
    return [
        (str(getattr(node, "name", "")), file)
        for file in python_files()
        if file.parts[0] in PRODUCT
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, kinds)
    ]


def test_names_of_public_classes_are_unique() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for name, file in definitions(ast.ClassDef):
        if not name.startswith("_"):
            files[name].add(str(file))
    assert len(files) > 500
    assert {name: sorted(where) for name, where in files.items() if len(where) > 1} == {}


def test_functions_are_not_named_with_of() -> None:
    functions = definitions(ast.FunctionDef, ast.AsyncFunctionDef)
    assert len(functions) > 3000
    assert [(name, str(file)) for name, file in functions if re.search(r"^_?of_|_of_|_of$", name)] == []
