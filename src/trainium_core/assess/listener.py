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
        path: The value of the called expression, usually a qualified name; UNKNOWN if it cannot be resolved.
        receiver: The value whose method is called; UNKNOWN if the function is not an attribute.
        method: The name of the method; empty if the function is not an attribute.
        arguments: The values of the positional arguments.
        keywords: The values of the keyword arguments, by name. `**` stands for a mapping that is unpacked.
    """

    node: ast.Call
    path: str
    receiver: str
    method: str
    arguments: Sequence[str]
    keywords: Mapping[str, str]


class CodeListener(Protocol):
    """Receives the contents of a module while a `Resolver` reads it."""

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

    def call_result(self, site: CallSite, place: "CodePlace") -> str:
        """The result of a call of a function or class of the project; UNKNOWN for other names.

        Args:
            site: The call.
            place: The place of the call, which the function takes over.
        """
        ...

    def global_value(self, module: str, name: str) -> str:
        """The value of a name of a module of the project, including the names of its star imports; else UNKNOWN."""
        ...

    def is_module_class(self, path: str) -> bool:
        """Whether a name is a class of the project that derives from torch.nn.Module."""
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
    """A function or method of the module.

    Attributes:
        scopes: The scopes that it can see.
        owner: The class in which it is defined.
        read_as: The places and parameters that are tensors with which it was read; empty until it is read.
        result: The value that it returns; UNKNOWN until it is read.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scopes: list[Scope]
    owner: Class | None
    is_method: bool
    read_as: set[str] = field(default_factory=set[str])
    result: str = UNKNOWN


def handles_import_errors(node: ast.Try | ast.TryStar) -> bool:
    """Whether the code continues if an import in the `try` block fails."""
    continuing = (handler for handler in node.handlers if not isinstance(handler.body[-1], ast.Raise))
    caught = (ast.unparse(handler.type) if handler.type else "Exception" for handler in continuing)
    return any(re.search(r"ImportError|ModuleNotFoundError|Exception", name) for name in caught)


def is_program_name(node: ast.If) -> bool:
    """Whether the condition compares `__name__`, which tells whether the file is run as a program."""
    left = node.test.left if isinstance(node.test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"


@dataclass
class CodePlace:
    """The current place of the reader in a module.

    Attributes:
        loops: The number of enclosing loops and comprehensions, plus 1 in a function that is assumed to run in a loop.
        guarded: The number of enclosing conditions that are true on CUDA only.
        tests: The conditions of the enclosing `if` and `elif` branches; an `else` branch adds none.
        function: The name of the enclosing function, if any.
        sets_up: Whether the code runs before the forward pass: in a method in `resolver.SET_UP`, or called by one.
        moved: The number of enclosing calls that move their object to a device.
        tables: The number of enclosing calls that compute a table on the CPU, outside of a forward pass.
        target: The name that the enclosing statement assigns; empty if it is another statement.
        compared: The number of enclosing comparisons, including calls of startswith and endswith.
        optional: The number of enclosing `if` statements, except on `__name__`, and of `try` blocks that handle a
            failed import.
        owner: The enclosing class, if any.
        is_forwarded: Whether a forward pass calls the enclosing function.
    """

    loops: int = 0
    guarded: int = 0
    tests: list[ast.expr] = field(default_factory=list[ast.expr])
    function: str = ""
    sets_up: bool = False
    moved: int = 0
    tables: int = 0
    target: str = ""
    compared: int = 0
    optional: int = 0
    owner: Class | None = None
    is_forwarded: bool = False

    @property
    def is_periodic(self) -> bool:
        """Whether the code runs only every few steps, because a condition has a remainder (`%`)."""
        nodes = (node for test in self.tests for node in ast.walk(test))
        return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in nodes)

    @property
    def in_forward(self) -> bool:
        """Whether the code may be in the forward pass: in a method of a torch module, or called by one."""
        in_module = self.owner is not None and self.owner.is_module and bool(self.function)
        return (in_module or self.is_forwarded) and not self.sets_up
