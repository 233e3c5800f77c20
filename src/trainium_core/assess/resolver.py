"""Reads a Python module in order and resolves its names: import aliases, assignments, `self.x`, functions.

It reports what it reads to a `CodeListener`. A function is read at its first call, with the arguments of that call, and
again at a call from a step or a forward pass, or with other tensors. `__init__` is read after its class, a function
without a call after the module.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from trainium_core.assess import kinds
from trainium_core.assess.expressions import Expressions, element_value, ends_with
from trainium_core.assess.kinds import ARRAY, GUARD, INT, PYTHON, SELF, TENSOR, UNKNOWN
from trainium_core.assess.listener import (
    CallSite,
    Class,
    CodeListener,
    CodePlace,
    Function,
    Project,
    Scope,
    handles_import_errors,
    is_program_name,
)

_PER_STEP = re.compile(r"^forward$|(training|validation|test|train|eval)_step|loss")
"""Names of functions that are assumed to run once for each batch."""

SET_UP = frozenset(("__init__", "reset_parameters", "init_weights", "_init_weights", "extra_repr", "setup"))
"""Names of methods of a module that are not part of its forward pass."""

_FLAGS = re.compile(r"(is|use|return|output|do|with|no)_|train|mode|name|layer|idx|index|mask_type|step")
"""The beginnings of names of parameters of `forward` that are rarely tensors."""

_EPOCH = re.compile(r"_?(ep|epoch|epoch_\w+)")

_CALLED = re.compile(r"\((\w+)")
"""The name before a parenthesis, in reversed text: ten times as fast as `\\b(\\w+)\\(` for the files of torch."""

DEEPEST_CALLS = 12


class NameResolver(Expressions):
    """Reads one module."""

    def __init__(self, module: str, *, is_package: bool, text: str, project: Project, listener: CodeListener) -> None:
        super().__init__(text=text, project=project, listener=listener)
        self.module = module
        self.package = module if is_package else module.rpartition(".")[0]
        self.results: list[str] = []
        self.text = text
        self._depth = 0
        self._statements: dict[type, Callable[[Any], None]] = {
            kind: getattr(self, f"_{kind.__name__.lower()}")
            for kind in (
                ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign,
                ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith,
                ast.Return, ast.Expr, ast.Try, ast.TryStar,
            )
        }  # fmt: skip

    def read(self, tree: ast.Module, *, whole: bool = True) -> None:
        """Read the module, then, if it is read as a whole, each function that nothing in it has called."""
        self._bind_ahead(tree.body)
        self.block(tree.body)
        for function in self._unread() if whole else ():
            self.read_function(function)

    def _unread(self) -> Iterable[Function]:
        """Functions that were not read yet, and those that they define: __init__, per-step and uncalled ones first."""
        while True:
            waiting = [function for function in self.functions.values() if not function.read_as]
            if not waiting:
                return
            yield from sorted(waiting, key=self._order) if len(waiting) > 1 else waiting

    def _order(self, function: Function) -> int:
        name = function.node.name
        if name == "__init__":
            return 0
        return 1 if _PER_STEP.search(name) or self._followed_by_parenthesis[name[::-1]] < 2 else 2

    @cached_property
    def _followed_by_parenthesis(self) -> Counter[str]:
        """How often each name is defined or called, by the reversed name."""
        return Counter(_CALLED.findall(self.text[::-1]))

    def _bind_ahead(self, body: Sequence[ast.stmt]) -> None:
        """Bind names of classes and functions, which code above their definition may use."""
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.globals[statement.name] = f"{self.module}.{statement.name}"

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            handler = self._statements.get(type(statement))
            if handler:
                handler(statement)
            else:
                self.children(statement)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.listener.imported(node, alias.name, ())
            if alias.asname:
                self.scopes[-1][alias.asname] = alias.name
            else:
                root = alias.name.partition(".")[0]
                self.scopes[-1][root] = root

    def _importfrom(self, node: ast.ImportFrom) -> None:
        origin = node.module or ""
        if node.level:
            parts = self.package.split(".") if self.package else []
            package = parts[: len(parts) - node.level + 1]
            origin = ".".join([*package, origin] if origin else package)
        else:
            self.listener.imported(node, origin, [alias.name for alias in node.names])
        for alias in node.names:
            path = f"{origin}.{alias.name}" if origin else alias.name
            if alias.name == "*":
                self.star_imports.append(origin)
            else:
                self.scopes[-1][alias.asname or alias.name] = path

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for expression in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.value(expression)
        is_method = self.place.owner is not None and not self.place.function
        seen = self.scopes[:-1] if is_method else self.scopes  # A method does not see the names of its class.
        function = Function(node, list(seen), self.place.owner, is_method)
        path = f"{self.place.owner.path if self.place.owner else self.module}.{node.name}"
        if self.place.function:
            path = f"{path}@{node.lineno}"
        if path in self.functions:
            path = f"{path}@{node.lineno}:{node.col_offset}"
        self.functions[path] = function
        self.scopes[-1][node.name] = path

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        for expression in node.decorator_list:
            self.value(expression)
        bases = [self.value(base) for base in node.bases]
        for keyword in node.keywords:
            self.value(keyword.value)
        path = f"{self.module}.{node.name}"
        methods = {
            statement.name for statement in node.body if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        is_module = any(self.is_module_class(base) for base in bases) or (
            "forward" in methods
            and any(base.rpartition(".")[2].endswith(("Module", "Layer", "Model")) for base in bases)
        )
        owner = Class(path, is_module)
        self.classes[path] = owner
        self.scopes[-1][node.name] = path
        outer, self.place = self.place, CodePlace(owner=owner)
        self.scopes.append({})
        self.block(node.body)
        inner = self.scopes.pop()
        self.place = outer
        owner.methods = {name: self.functions[inner[name]] for name in methods if inner.get(name) in self.functions}
        owner.attributes.update({name: value for name, value in inner.items() if name not in methods})
        if "__init__" in owner.methods:
            self.read_function(owner.methods["__init__"])

    def _assign(self, node: ast.Assign) -> None:
        value = node.value
        if isinstance(value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple):
            targets = node.targets[0].elts
            if len(node.targets) == 1 and len(targets) == len(value.elts):
                results = [self.value(elt) for elt in value.elts]
                for target, item in zip(targets, results, strict=True):
                    self.bind(target, item)
                return
        first = node.targets[0]
        self.place.target = first.id if isinstance(first, ast.Name) else ""
        result = self.value(value)
        self.place.target = ""
        is_none = isinstance(value, ast.Constant) and value.value is None
        for target in node.targets:
            if not (
                is_none and isinstance(target, ast.Name) and target.id in self.scopes[-1]
            ):  # Such as `torch = None`.
                self.bind(target, result)

    def _annassign(self, node: ast.AnnAssign) -> None:
        declared = self._annotated(node.annotation)
        result = self.value(node.value) if node.value else UNKNOWN
        self.bind(node.target, result or declared)

    def _augassign(self, node: ast.AugAssign) -> None:
        added = self.value(node.value)
        before = self._look_up(node.target.id) if isinstance(node.target, ast.Name) else UNKNOWN
        if isinstance(node.target, ast.Attribute) and self.value(node.target.value) == SELF and self.place.owner:
            before = self.place.owner.attributes.get(node.target.attr, UNKNOWN)
        self.bind(node.target, kinds.combined(before, added, divides=isinstance(node.op, ast.Div)))

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.bind(node.target, element_value(self.value(node.iter), node.iter))
        self.listener.loop(node)
        steps = not _is_epoch_loop(node)
        self.place.loops += steps
        self.block(node.body)
        self.place.loops -= steps
        self.block(node.orelse)

    _asyncfor = _for

    def _while(self, node: ast.While) -> None:
        self.listener.loop(node)
        self.place.loops += 1
        self.listener.branch(node.test, self.value(node.test))
        self.block(node.body)
        self.place.loops -= 1
        self.block(node.orelse)

    def _if(self, node: ast.If) -> None:
        test = self.value(node.test)
        self.listener.branch(node.test, test)
        guards = test == GUARD
        is_program = is_program_name(node)
        self.place.optional += not is_program
        self.place.guarded += guards
        self.place.tests.append(node.test)
        self.block(node.body)
        self.place.guarded -= guards
        self.place.tests.pop()
        self.block(node.orelse)
        self.place.optional -= not is_program

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            result = self.value(item.context_expr)
            if item.optional_vars:
                self.bind(item.optional_vars, result)
        self.block(node.body)

    _asyncwith = _with

    def _try(self, node: Any) -> None:
        is_optional = handles_import_errors(node)
        self.place.optional += is_optional
        self.block(node.body)
        self.place.optional -= is_optional
        for handler in node.handlers:
            if handler.type:
                self.value(handler.type)
            self.block(handler.body)
        self.block(node.orelse)
        self.block(node.finalbody)

    _trystar = _try

    def _return(self, node: ast.Return) -> None:
        if node.value:
            self.results.append(self.value(node.value))

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # Docstrings are not reported.
            self.value(node.value)

    def read_function(self, function: Function, site: CallSite | None = None, caller: CodePlace | None = None) -> str:
        """The value that the function returns. Reads it if it was not read yet for such a call.

        Args:
            function: A function of this module.
            site: The call; None if the function is read without one.
            caller: The place of the call.
        """
        if self._depth > DEEPEST_CALLS:
            return function.result
        node, caller = function.node, caller or self.place
        place = CodePlace(
            loops=int(bool(_PER_STEP.search(node.name)) or bool(caller.loops and caller.function)),
            function=node.name,
            sets_up=node.name in SET_UP or caller.sets_up,
            moved=caller.moved,
            owner=function.owner,
            is_forwarded=caller.in_forward and site is not None,
        )
        parameters = self._parameters(function, site)
        read_as = {f"parameter {name}" for name, value in parameters.items() if value in kinds.TENSORS}
        read_as |= {"step"} if place.loops else set()
        read_as |= {"forward"} if place.in_forward else set()
        if function.read_as and read_as <= function.read_as:
            return function.result
        function.read_as |= read_as | {"read"}
        saved = self.scopes, self.place, self.results
        self.place, self.scopes, self.results = place, [*function.scopes, parameters], []
        self._depth += 1
        self.block(node.body)
        self._depth -= 1
        result = next((value for value in self.results if value and value != PYTHON), UNKNOWN)
        function.result = result or function.result
        self.scopes, self.place, self.results = saved
        return function.result

    def _parameters(self, function: Function, site: CallSite | None) -> Scope:
        signature = function.node.args
        parameters = [*signature.posonlyargs, *signature.args]
        scope = Scope()
        is_static = any(
            isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
            for decorator in function.node.decorator_list
        )
        if function.is_method and parameters and not is_static:
            scope[parameters[0].arg] = SELF
            parameters = parameters[1:]
        computes = (
            function.is_method
            and function.node.name == "forward"
            and function.owner is not None
            and function.owner.is_module
        )
        without_default = len(parameters) - len(signature.defaults)
        for at, parameter in enumerate([*parameters, *signature.kwonlyargs]):
            declared = self._annotated(parameter.annotation)
            called = _argument(site, at, parameter.arg) if site else UNKNOWN
            is_input = computes and at < without_default and not _FLAGS.match(parameter.arg)
            assumed = TENSOR if is_input and parameter.annotation is None else UNKNOWN
            scope[parameter.arg] = declared or called or assumed
        for rest in (signature.vararg, signature.kwarg):
            if rest:
                scope[rest.arg] = UNKNOWN
        return scope

    def _annotated(self, annotation: ast.expr | None) -> str:
        """The kind of value that an annotation declares; UNKNOWN without one, or if its kind is not known."""
        if annotation is None:
            return UNKNOWN
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            name = annotation.value
        elif isinstance(annotation, ast.Name | ast.Attribute):
            name = self.value(annotation)
        elif isinstance(annotation, ast.BinOp):
            return self._annotated(annotation.left) or self._annotated(annotation.right)
        elif isinstance(annotation, ast.Subscript):
            return self._annotated(annotation.slice) if ends_with(annotation.value, "Optional") else UNKNOWN
        else:
            return UNKNOWN
        if name in ("torch.Tensor", "Tensor", "torch.FloatTensor"):
            return TENSOR
        if name in ("torch.LongTensor", "torch.IntTensor"):
            return kinds.INT_TENSOR
        if name.partition(".")[0] in kinds.ARRAY_LIBRARIES or name in ("np.ndarray", "ndarray"):
            return ARRAY
        if name in ("builtins.int", "int"):
            return INT
        return (
            PYTHON if name.removeprefix("builtins.") in ("float", "bool", "str", "list", "dict", "tuple") else UNKNOWN
        )


def _is_epoch_loop(node: ast.For | ast.AsyncFor) -> bool:
    """Whether each pass of a loop is an epoch: its variable says so, and its body has a loop or calls a training."""
    if not isinstance(node.target, ast.Name) or not _EPOCH.fullmatch(node.target.id):
        return False
    inner = [part for statement in node.body for part in ast.walk(statement)]
    return any(
        isinstance(part, ast.For)
        or (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name | ast.Attribute)
            and "train" in _name(part.func)
        )
        for part in inner
    )


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _argument(site: CallSite, at: int, name: str) -> str:
    """The value of an argument in a call, by its position and name."""
    value = site.arguments[at] if at < len(site.arguments) else site.keywords.get(name, UNKNOWN)
    return UNKNOWN if value == SELF else value
