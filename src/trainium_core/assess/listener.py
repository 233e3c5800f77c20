"""The interface between the reader of a module and its listeners, and the reader's place in the module."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainium_core.assess.kinds import UNKNOWN

Scope = dict[str, str]
"""Names and their values."""

Located = ast.expr | ast.stmt
"""Nodes with a position in the file."""


@dataclass(slots=True, kw_only=True)
class CallSite:
    """A call.

    Attributes:
        path: The called name; unknown if it cannot be resolved.
        receiver: The value whose method is called.
        method: The name of the method.
    """

    node: ast.Call
    path: str
    receiver: str
    method: str
    arguments: Sequence[str]
    keywords: Mapping[str, str]


class Listener(Protocol):
    """Gets the contents of a module. `reader` has the current place."""

    def imported(self, node: ast.Import | ast.ImportFrom, name: str, parts: Sequence[str]) -> None: ...

    def name(self, node: ast.expr, path: str) -> None: ...

    def call(self, site: CallSite) -> None: ...

    def string(self, node: ast.expr, text: str) -> None: ...

    def subscript(self, node: ast.Subscript, base: str, index: str) -> None: ...

    def operation(self, node: ast.BinOp, left: str, right: str) -> None: ...

    def branch(self, node: ast.expr, value: str) -> None: ...

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None: ...


class Project(Protocol):
    """The other modules of the code base."""

    def result_of(self, path: str) -> str:
        """The result of a call of a function or class of the project; unknown for others."""
        ...

    def is_module_class(self, path: str) -> bool:
        """Whether it is a class of the project that derives from torch.nn.Module."""
        ...


@dataclass
class Class:
    """A class of the module.

    Attributes:
        path: Its qualified name.
        is_module: Whether it derives from torch.nn.Module.
        attributes: The values of `self.x`.
    """

    path: str
    is_module: bool
    attributes: Scope = field(default_factory=dict[str, str])
    methods: "dict[str, Function]" = field(default_factory=lambda: dict[str, "Function"]())


@dataclass
class Function:
    """A function or method of the module, and its result once it was read."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scopes: list[Scope]
    owner: Class | None
    is_method: bool
    is_read: bool = False
    result: str = UNKNOWN


def handles_import_errors(node: ast.Try | ast.TryStar) -> bool:
    """Whether the code continues if an import in it fails."""
    continuing = (handler for handler in node.handlers if not isinstance(handler.body[-1], ast.Raise))
    caught = (ast.unparse(handler.type) if handler.type else "Exception" for handler in continuing)
    return any(re.search(r"ImportError|ModuleNotFoundError|Exception", name) for name in caught)


@dataclass
class Place:
    """The current place of the reader in a module.

    Attributes:
        loops: The number of enclosing loops or per-step functions.
        guarded: The number of enclosing conditions that are true on CUDA only.
        tests: All enclosing conditions.
        sets_up: Whether it is in __init__.
        moved: The number of enclosing calls that move their argument to a device.
        compared: The number of enclosing comparisons.
        optional: The number of conditions, or handlers of a failed import, on which this depends.
    """

    loops: int = 0
    guarded: int = 0
    tests: list[ast.expr] = field(default_factory=list[ast.expr])
    function: str = ""
    sets_up: bool = False
    moved: int = 0
    compared: int = 0
    optional: int = 0
    owner: Class | None = None

    @property
    def is_periodic(self) -> bool:
        """Whether this runs only every few steps, by a condition with a remainder."""
        nodes = (node for test in self.tests for node in ast.walk(test))
        return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in nodes)

    @property
    def in_forward(self) -> bool:
        """Whether this is in the forward pass of a torch module."""
        return self.owner is not None and self.owner.is_module and bool(self.function) and not self.sets_up
