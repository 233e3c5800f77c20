"""Determines the values of expressions in a module from the names in them."""

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from trainium_core.assess import kinds
from trainium_core.assess.kinds import ARRAY, COUNT, GUARD, INT, INTS, NUMBER, PYTHON, SELF, TENSOR, UNKNOWN
from trainium_core.assess.listener import CallSite, Class, CodeListener, CodePlace, Function, Project, Scope

_BUILTINS = frozenset(vars(builtins))
_RESULTS = {
    **dict.fromkeys(("builtins.len", "builtins.int", "builtins.ord"), INT),
    **dict.fromkeys(("builtins.float", "builtins.str", "builtins.bool", "builtins.range", "builtins.round"), PYTHON),
    **dict.fromkeys(("builtins.isinstance", "builtins.hasattr", "builtins.dict", "builtins.set"), PYTHON),
}
_NUMBERS = frozenset(f"builtins.{name}" for name in ("int", "round", "max", "min", "abs"))
_HOLDERS = frozenset(("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "builtins.iter"))

_TABLES = frozenset(f"torch.{name}" for name in ("arange", "linspace", "logspace", "zeros", "ones", "full", "eye"))
"""Functions that compute a table from a few numbers."""


class Expressions:
    """Evaluates expressions at the reader's current place, which `Resolver` moves."""

    def __init__(self, *, text: str, project: Project, listener: CodeListener) -> None:
        self.has_default_device = "set_default_device" in text or "set_default_tensor_type" in text
        self.project = project
        self.listener = listener
        self.place: CodePlace = CodePlace()
        self.globals: Scope = {}
        self.scopes: list[Scope] = [self.globals]
        self.star_imports: list[str] = []
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, Class] = {}
        self._expressions: dict[type, Callable[[Any], str]] = {
            kind: getattr(self, f"_{kind.__name__.lower()}")
            for kind in (
                ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript, ast.BinOp, ast.Compare, ast.UnaryOp,
                ast.BoolOp, ast.IfExp, ast.Tuple, ast.List, ast.JoinedStr, ast.ListComp, ast.SetComp, ast.GeneratorExp,
                ast.DictComp, ast.Lambda, ast.NamedExpr, ast.Starred, ast.Await, ast.Dict, ast.Slice,
            )
        }  # fmt: skip

    def read_function(self, function: Function, site: CallSite | None = None, caller: CodePlace | None = None) -> str:
        """The value that the function returns. Reads it if it was not read yet for such a call."""
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt]) -> None:
        raise NotImplementedError

    def is_module_class(self, path: str) -> bool:
        """Whether a class is torch.nn.Module or derives from it. All names below torch.nn count as such classes."""
        if path in kinds.MODULE_CLASSES or (path.startswith("torch.nn.") and path.count(".") > 1):
            return True
        own = self.classes.get(path)
        return own.is_module if own else self.project.is_module_class(path)

    def bind(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = value
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            if base == SELF and self.place.owner:
                known = self.place.owner.attributes
                if not known.get(target.attr):
                    known[target.attr] = value
            elif base and base[0] != "<":
                self.listener.name(target, f"{base}.{target.attr}")
        elif isinstance(target, ast.Tuple | ast.List):
            part = (
                value
                if value in kinds.TENSORS or value in kinds.ARRAYS or value == PYTHON
                else INT
                if value == INTS
                else UNKNOWN
            )
            for elt in target.elts:
                self.bind(elt.value if isinstance(elt, ast.Starred) else elt, part)
        else:
            self.value(target)

    def children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            elif isinstance(child, ast.stmt):
                self.block((child,))
            else:
                self.children(child)

    def value(self, node: ast.expr) -> str:
        """The value of an expression; everything in it is reported to the listener."""
        handler = self._expressions.get(type(node))
        if handler:
            return handler(node)
        self.children(node)
        return UNKNOWN

    def _look_up(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in _BUILTINS:
            return f"builtins.{name}"
        values = (self.project.global_value(module, name) for module in self.star_imports)
        return next(filter(None, values), UNKNOWN)

    def _name(self, node: ast.Name) -> str:
        value = self._look_up(node.id)
        if value and value[0] != "<" and "." in value:
            self.listener.name(node, value)
        return value

    def _attribute(self, node: ast.Attribute) -> str:
        return self._attribute_value(self.value(node.value), node)

    def _attribute_value(self, base: str, node: ast.Attribute) -> str:
        if not base or len(base) > kinds.LONGEST:
            return UNKNOWN
        if base[0] == "<":
            if base == SELF and self.place.owner:
                return self.place.owner.attributes.get(node.attr, UNKNOWN)
            return kinds.attribute_kind(base, node.attr)
        if base[-1] == ")":
            if base.startswith("torch.nn.") and node.attr in ("weight", "bias"):
                return TENSOR
            return f"{base}.{node.attr}"
        path = f"{base}.{node.attr}"
        self.listener.name(node, path)
        return path

    def _call(self, node: ast.Call) -> str:
        receiver = method = UNKNOWN
        if isinstance(node.func, ast.Attribute):
            method = node.func.attr
            moves = method in ("to", "type_as", "cuda")
            self.place.moved += moves
            receiver = self.value(node.func.value)
            self.place.moved -= moves
            path = self._attribute_value(receiver, node.func)
        else:
            path = self.value(node.func)
        compares = method in ("startswith", "endswith")
        self.place.compared += compares
        makes_table = path in _TABLES and not self.place.in_forward and not _names_device(node)
        self.place.tables += makes_table
        arguments = [self.value(arg) for arg in node.args]
        self.place.compared -= compares
        keywords = {keyword.arg or "**": self.value(keyword.value) for keyword in node.keywords}
        self.place.tables -= makes_table
        site = CallSite(node=node, path=path, receiver=receiver, method=method, arguments=arguments, keywords=keywords)
        self.listener.call(site)
        return self._result(site)

    def _result(self, site: CallSite) -> str:
        path, receiver = site.path, site.receiver
        if receiver == SELF and self.place.owner and site.method in self.place.owner.methods:
            return self.read_function(self.place.owner.methods[site.method], site, self.place)
        if receiver in kinds.TENSORS or receiver in kinds.ARRAYS:
            dtype = [site.keywords["dtype"]] if "dtype" in site.keywords else []
            return kinds.method_result(receiver, site.method, [*site.arguments, *dtype])
        if not path:
            return kinds.UNKNOWN_RECEIVERS.get(site.method, UNKNOWN)
        if path[0] == "<":
            return UNKNOWN
        root = path.partition(".")[0]
        if path in _NUMBERS and any(value in kinds.READ or value in kinds.TENSORS for value in site.arguments):
            return COUNT if path == "builtins.int" else NUMBER
        if root == "builtins":
            return site.arguments[0] if path in _HOLDERS and site.arguments else _RESULTS.get(path, UNKNOWN)
        if path[-1] == ")":
            return TENSOR if self.is_module_class(path[:-2]) else UNKNOWN
        if ")" in path:  # A method of an instance.
            return kinds.UNKNOWN_RECEIVERS.get(site.method, UNKNOWN)
        if root in kinds.ARRAY_LIBRARIES:
            return ARRAY
        if root == "torch":
            result = kinds.torch_result(path, site.arguments, site.keywords.get("dtype", UNKNOWN))
            may_be_on_device = "device" in site.keywords or "**" in site.keywords or self.place.in_forward
            if path in kinds.MAKERS or _is_host_class(path):
                may_be_on_device = may_be_on_device and path in kinds.MAKERS
                return result if may_be_on_device or self.has_default_device else kinds.on_host(result)
            tensors = [argument for argument in site.arguments if argument in kinds.TENSORS]
            on_host = site.arguments and site.arguments[0] in kinds.ARRAYS and not tensors
            return kinds.on_host(result) if on_host else result
        if path in self.functions:
            return self.read_function(self.functions[path], site, self.place)
        if path in self.classes:
            return f"{path}()"
        return self.project.call_result(site, self.place) or f"{path}()"

    def _constant(self, node: ast.Constant) -> str:
        if isinstance(node.value, str):
            self.listener.string(node, node.value)
            return PYTHON
        return INT if type(node.value) is int else UNKNOWN if node.value is None else PYTHON

    def _joinedstr(self, node: ast.JoinedStr) -> str:
        text = ""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.value(part.value)
                text += "{}"
            elif isinstance(part, ast.Constant):
                text += str(part.value)
        self.listener.string(node, text)
        return PYTHON

    def _subscript(self, node: ast.Subscript) -> str:
        base = self.value(node.value)
        index = PYTHON if _is_text(node.slice) else self.value(node.slice)
        self.listener.subscript(node, base, index)
        return base if base in kinds.TENSORS or base in kinds.ARRAYS else INT if base == INTS else UNKNOWN

    def _binop(self, node: ast.BinOp) -> str:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.RShift | ast.MatMult | ast.Pow):
            self.listener.operation(node, left, right)
        return kinds.combined(left, right, divides=isinstance(node.op, ast.Div))

    def _compare(self, node: ast.Compare) -> str:
        self.place.compared += 1
        values = [self.value(node.left), *map(self.value, node.comparators)]
        self.place.compared -= 1
        by_identity = any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
        if any(isinstance(op, ast.Eq) for op in node.ops) and any(map(_is_cuda, (node.left, *node.comparators))):
            return GUARD
        return PYTHON if by_identity else kinds.compared(values)

    def _unaryop(self, node: ast.UnaryOp) -> str:
        operand = self.value(node.operand)
        if not isinstance(node.op, ast.Not):
            return operand
        self.listener.branch(node.operand, operand)
        return PYTHON

    def _boolop(self, node: ast.BoolOp) -> str:
        values = [self.value(value) for value in node.values]
        for operand, value in zip(node.values[:-1], values, strict=False):
            self.listener.branch(operand, value)
        if isinstance(node.op, ast.And):
            return GUARD if GUARD in values else next((value for value in values if value in kinds.TENSORS), UNKNOWN)
        return next(filter(None, values), UNKNOWN)

    def _ifexp(self, node: ast.IfExp) -> str:
        self.listener.branch(node.test, self.value(node.test))
        body, other = self.value(node.body), self.value(node.orelse)
        return body or other

    def _tuple(self, node: ast.Tuple | ast.List) -> str:
        values = [self.value(elt) for elt in node.elts]
        if read := kinds.READ.intersection(values):
            return NUMBER if NUMBER in read else COUNT
        return INTS if values and all(value == INT for value in values) else UNKNOWN

    _list = _tuple

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> str:
        return self._comprehension(node.generators, (node.elt,))

    _setcomp = _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp) -> str:
        return self._comprehension(node.generators, (node.key, node.value))

    def _comprehension(self, generators: Sequence[ast.comprehension], elements: Sequence[ast.expr]) -> str:
        self.scopes.append({})
        for generator in generators:
            self.bind(generator.target, element_value(self.value(generator.iter), generator.iter))
            for condition in generator.ifs:
                self.listener.branch(condition, self.value(condition))
        self.place.loops += 1
        for element in elements:
            self.value(element)
        self.place.loops -= 1
        self.scopes.pop()
        return UNKNOWN

    def _lambda(self, node: ast.Lambda) -> str:
        signature = node.args
        self.scopes.append(
            {parameter.arg: UNKNOWN for parameter in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)}
        )
        self.value(node.body)
        self.scopes.pop()
        return UNKNOWN

    def _namedexpr(self, node: ast.NamedExpr) -> str:
        value = self.value(node.value)
        self.bind(node.target, value)
        return value

    def _starred(self, node: ast.Starred | ast.Await) -> str:
        return self.value(node.value)

    _await = _starred

    def _dict(self, node: ast.Dict) -> str:
        for key, value in zip(node.keys, node.values, strict=True):
            if key and not isinstance(key, ast.Constant):  # The key "cuda" names no device.
                self.value(key)
            self.value(value)
        return PYTHON

    def _slice(self, node: ast.Slice) -> str:
        values = [self.value(part) for part in (node.lower, node.upper, node.step) if part]
        return next((value for value in values if value in kinds.READ), UNKNOWN)


def _is_host_class(path: str) -> bool:
    """Whether a name is a class of tensors on the CPU, such as torch.LongTensor."""
    return path.startswith("torch.") and path.endswith("Tensor") and path.count(".") == 1


def _names_device(node: ast.Call) -> bool:
    return any(keyword.arg in (None, "device") for keyword in node.keywords)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cuda"


def element_value(value: str, node: ast.expr) -> str:
    """The value of each element of an iterable, given the value of the iterable and its expression."""
    if value in kinds.TENSORS or value in kinds.ARRAYS:
        return value
    if value == INTS or (isinstance(node, ast.Call) and ends_with(node.func, "range")):
        return INT
    return UNKNOWN


def ends_with(node: ast.expr, name: str) -> bool:
    """Whether an expression is this name, or an attribute with this name."""
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
