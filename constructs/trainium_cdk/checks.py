"""Checks of parameters that AWS would reject only during the deployment, and their errors."""

import re
from collections.abc import Iterable
from enum import Enum
from itertools import chain
from math import ceil
from typing import Any, Literal, cast

from aws_cdk import Duration, RemovalPolicy, Size, SizeRoundingBehavior, Stack, Token
from constructs import IConstruct, Node

from trainium_core.plan.rules.forms import form_problems
from trainium_core.problems import Problem
from trainium_core.setting_schema.setting import BUCKET_NAME

_LONGEST_VALUE = 120

Owner = IConstruct | str
"""A construct, or the name of the class of a value, which an error names."""


class PropsError(ValueError):
    """Invalid parameters of a construct. The message names each one, its value, the allowed values and the fix.

    Attributes:
        path: Path of the construct, or the class of the value.
        problems: All problems. The `key` of each is the name of the parameter.
    """

    path: str
    problems: tuple[Problem, ...]

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path, self.problems = path, tuple(problems)
        super().__init__(path, self.problems)

    def __str__(self) -> str:
        return "\n".join(f"{self.path}: {_as_line(problem)}" for problem in self.problems)


def refuse(owner: Owner, parameter: str, got: object, *, allowed: str, fix: str) -> PropsError:
    """The error for one parameter, to raise.

    Args:
        got: The value of the parameter. A construct is shown by its path.
    """
    node = getattr(got, "node", None)
    shown = node.path if isinstance(node, Node) else got
    return PropsError(_path(owner), [Problem(key=parameter, got=shown, allowed=allowed, fix=fix)])


def check(owner: Owner, *problems: Iterable[Problem]) -> None:
    """Raise PropsError if there are problems."""
    if all_problems := [*chain.from_iterable(problems)]:
        raise PropsError(_path(owner), all_problems)


def form(setting: str, value: Any, *, field: str | None = None) -> Iterable[Problem]:
    """The problems with the form of a value. None and values that are not known yet are accepted.

    Args:
        field: Name of the parameter. Default: the setting.
    """
    return () if value is None or is_token(value) or is_pending(value) else form_problems(setting, value, field=field)


def first_line(error: Exception) -> str:
    """The message of a CDK error, without the stack trace that follows it."""
    return str(error).partition("\n")[0]


def is_token(value: Any) -> bool:
    """Whether a value of any type is or contains a CDK token."""
    if isinstance(value, str) and "${" not in value:
        return False  # how every token in a string begins; asking the CDK is slower
    if isinstance(value, tuple):
        items = list(cast("tuple[Any, ...]", value))
        return any(map(is_token, items)) or Token.is_unresolved(items)  # which finds only a token for the whole list
    try:
        return Token.is_unresolved(value)
    except AttributeError:  # raised by jsii for Python objects that are not objects of the CDK
        return False


def is_pending(value: Any) -> bool:
    """Whether a value of any type is or contains the placeholder of a lookup that the CDK CLI has yet to make.

    A refusal would end the synthesis before the lookup. Afterwards, the CLI synthesises again with the value.
    Source: aws-cdk-lib 2.275, the dummy values of StringParameter.value_from_lookup and MachineImage.lookup.
    """
    if isinstance(value, tuple):
        return any(map(is_pending, cast("tuple[Any, ...]", value)))
    return isinstance(value, str) and (value.startswith("dummy-value-for-") or value == "ami-1234")


def check_known(owner: Owner, parameter: str, value: Any, *, why: str) -> None:
    """Raise PropsError for a CDK token.

    Args:
        why: Why the value must be known at synthesis.
    """
    if is_token(value):
        known = "a value known at synthesis"
        raise refuse(owner, parameter, value, allowed=known, fix=f"pass the value itself: {why}")


def whole_duration(owner: Owner, parameter: str, value: Duration, unit: Literal["days", "hours", "minutes"]) -> int:
    """A duration as a whole number of a unit.

    Raises:
        PropsError: The duration is a CDK token, or not a whole number of the unit.
    """
    if value.is_unresolved():
        fix = f"pass a number, such as Duration.{unit}(2)"
        raise refuse(owner, parameter, value, allowed="a duration known at synthesis", fix=fix)
    number: float = getattr(value, f"to_{unit}")(integral=False)
    if number % 1:
        fix = f"round it, for example to Duration.{unit}({ceil(number)})"
        raise refuse(owner, parameter, value, allowed=f"a whole number of {unit}", fix=fix)
    return int(number)


def whole_gibibytes(construct: IConstruct, parameter: str, value: Size) -> int:
    """A size as a whole number of GiB.

    Raises:
        PropsError: The size is a CDK token, or not a whole number of GiB.
    """
    if value.is_unresolved():
        fix = "pass a number, such as Size.gibibytes(1200)"
        raise refuse(construct, parameter, value, allowed="a size known at synthesis", fix=fix)
    gib = value.to_gibibytes(rounding=SizeRoundingBehavior.NONE)
    if gib % 1:
        fix = f"round it, for example to Size.gibibytes({ceil(gib)})"
        raise refuse(construct, parameter, f"{gib:g} GiB", allowed="a whole number of GiB", fix=fix)
    return int(gib)


def check_removal_policy(construct: IConstruct, policy: RemovalPolicy | None) -> None:
    """Raise PropsError for SNAPSHOT, which CloudFormation does not support for buckets and file systems."""
    if policy == RemovalPolicy.SNAPSHOT:
        allowed = "DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE"
        raise refuse(construct, "removal_policy", policy, allowed=allowed, fix="choose one of these")


def check_bucket_name(construct: IConstruct, parameter: str, name: str | None) -> None:
    """Raise PropsError unless S3 accepts the name of a bucket. None and values that are not known yet are accepted."""
    if name is not None and not is_token(name) and not is_pending(name) and not re.fullmatch(BUCKET_NAME, name):
        allowed = "the name of an S3 bucket: 3 to 63 lower-case letters, digits, hyphens and periods"
        raise refuse(construct, parameter, name, allowed=allowed, fix="pass the name of the bucket, without s3://")


def check_same_region(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError if a resource is in another region than the construct and both regions are known.

    Args:
        what: The kind of resource, with its article, such as `a VPC`.
    """
    _check_same(construct, parameter, value, Stack.of(construct).region, where="region", what=what)


def check_same_account(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError if a resource is in another account than the construct and both accounts are known."""
    _check_same(construct, parameter, value, Stack.of(construct).account, where="account", what=what)


def _check_same(construct: IConstruct, parameter: str, value: Any, own: str, *, where: str, what: str) -> None:
    """Raise PropsError if an attribute of the environments of a resource and of the stack is known and differs.

    Args:
        own: Value of the attribute for the stack.
        where: Name of the attribute, `region` or `account`.
    """
    other: str = getattr(value.env, where)
    if other != own and not Token.is_unresolved(other) and not Token.is_unresolved(own):
        shown = f"{cast(IConstruct, value).node.path} of {other}"
        allowed = f"{what} of {own}, the {where} of the stack"
        raise refuse(construct, parameter, shown, allowed=allowed, fix=f"pass {what} of that {where}")


def _path(owner: Owner) -> str:
    return owner if isinstance(owner, str) else owner.node.path


def _as_line(problem: Problem) -> str:
    nearest = f" (nearest: {problem.nearest})" if problem.nearest else ""
    return f"{problem.key}: got {_shown(problem.got)}; allowed: {problem.allowed}{nearest}; fix: {problem.fix}"


def _shown(got: object) -> str:
    if type(got) in (str, float, tuple) and is_token(got):  # the encodings of tokens
        return "a CDK token"
    if isinstance(got, Duration | Size) and got.is_unresolved():
        return "a CDK token"
    if isinstance(got, Duration):
        return got.to_human_string()
    if hasattr(type(got), "__jsii_type__"):
        return str(got) if isinstance(got, Enum) else type(got).__name__
    text = repr(got)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE // 2]} ... {text[-_LONGEST_VALUE // 3 :]}"
