"""The types of the arguments of public constructors are checked against their annotations.

typeguard 2.13, which the CDK uses, checks neither interfaces of the CDK nor unions written with `|`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import formatannotation, getattr_static, signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from constructs import Construct
from jsii._reference_map import InterfaceDynamicProxy

from trainium_cdk.checks import PropsError, is_token
from trainium_core.problems import Problem

_NOT_CHECKED = {"self", "scope", "construct_id", "return"}
"""jsii checks scope and ID of a construct."""
_NO_ATTRIBUTE = object()


def check_argument_types(kind: type) -> None:
    """Let the constructor of a class and its static methods raise PropsError for arguments of a wrong type.

    Args:
        kind: A class of which each parameter of these functions has an annotation.
    """
    for name, member in [*vars(kind).items()]:
        if isinstance(member, staticmethod) and not name.startswith("_"):
            setattr(kind, name, staticmethod(_checked(cast("Callable[..., Any]", member.__func__), kind)))
    if "__init__" in vars(kind):
        setattr(kind, "__init__", _checked(kind.__init__, kind))  # noqa: B010


def _checked(function: Callable[..., Any], kind: type) -> Callable[..., Any]:
    names = [*signature(function).parameters]
    is_construct = "scope" in names

    @cache
    def annotations() -> Mapping[str, Any]:
        return {name: hint for name, hint in get_type_hints(function).items() if name not in _NOT_CHECKED}

    @wraps(function)
    def checked(*positional: Any, **named: Any) -> Any:
        given = dict(zip(names, positional, strict=False)) | named
        hints = annotations()
        wrong = [name for name, value in given.items() if name in hints and not _fits(value, hints[name])]
        scope = given.get("scope")
        if wrong and (isinstance(scope, Construct) or not is_construct):
            # The construct is not created yet.
            path = f"{scope.node.path}/{given.get('construct_id')}".removeprefix("/") if scope else kind.__name__
            raise PropsError(path, [_problem(name, given[name], hints[name]) for name in wrong])
        return function(*positional, **named)

    return checked


def _problem(parameter: str, value: Any, hint: Any) -> Problem:
    # The modules of names, except those of the CDK's services.
    allowed = re.sub(r"\b(?:(?!aws_(?!cdk))\w+\.)+", "", formatannotation(hint)).replace(" | ", " or ")
    got = f"{value!r}, of type {type(value).__name__}" if type(value).__repr__ is object.__repr__ else value
    return Problem(key=parameter, got=got, allowed=f"a value of type {allowed}", fix="pass a value of this type")


def _fits(value: Any, hint: Any) -> bool:
    """Whether the type of a value is that of an annotation. Choices and the items of mappings are checked
    elsewhere."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return type(value) in map(type, arguments)
    if hint is None or hint is NoneType:
        return value is None
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin in (Sequence, tuple):
        is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return is_list and all(_fits(item, arguments[0]) for item in cast("Sequence[Any]", value))
    if origin is Mapping:
        return isinstance(value, Mapping)
    if getattr(hint, "_is_protocol", False):
        return all(_has(value, name) for name in _members(hint))
    if hint in (int, float):
        return is_token(value) or (isinstance(value, int | hint) and not isinstance(value, bool))
    return isinstance(value, hint)


@cache
def _members(protocol: type) -> frozenset[str]:
    """The public members of a protocol and of the protocols that it extends."""
    return frozenset(
        name for base in protocol.__mro__ for name in vars(base) if not name.startswith("_") and base is not object
    )


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute, which is not read: in objects of the CDK, this would call the CDK."""
    parts: Sequence[Any] = getattr(value, "_delegates", ()) if isinstance(value, InterfaceDynamicProxy) else (value,)
    return any(getattr_static(part, name, _NO_ATTRIBUTE) is not _NO_ATTRIBUTE for part in parts)
