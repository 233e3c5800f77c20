"""Names of modules, and of the modules that they import."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path


def module_name(file: Path) -> str:
    """The name of a module by its path below a source root."""
    parts = file.relative_to(file.parts[0]).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(name: str, source: str, known: Collection[str]) -> Iterator[str]:
    """The absolute names of the modules that a module may import: `from a import b` imports `a`, and perhaps `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute_name(name, node, known)
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def absolute_name(name: str, node: ast.ImportFrom, known: Collection[str]) -> str:
    """The absolute name of the module that a `from` import names."""
    if not node.level:
        return node.module or ""
    is_package = any(other.startswith(f"{name}.") for other in known)
    parents = name.split(".")[: (1 if is_package else 0) - node.level or None]
    return ".".join([*parents, *([node.module] if node.module else [])])
