"""Whether an argument is what a parameter takes, where the CDK would fail later, or not at all."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import Stack, Token
from constructs import IConstruct

from trainium_cdk.props_error import refuse
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.setting_schema.forms import UnreadableError


def is_token(value: Any) -> bool:
    """Whether a value, of whatever type, is or holds a CDK token."""
    if isinstance(value, str) and "${" not in value:
        return False  # every token in a text begins so; to ask the CDK costs a call
    try:
        return Token.is_unresolved(list(cast(Sequence[Any], value)) if isinstance(value, tuple) else value)
    except AttributeError:  # jsii's, for what it has no type for
        return False


def check_object(construct: IConstruct, parameter: str, value: Any, *, has: str, what: str) -> None:
    """Raise PropsError unless a value has an attribute of the CDK's interface that the parameter takes.

    what: the interface, such as `an ec2.IVpc`.
    """
    if isinstance(value, type) or not hasattr(value, has):
        raise refuse(construct, parameter, value, allowed=what, fix=f"give {what}")


def check_setting(construct: IConstruct, parameter: str, value: Any, *, setting: str) -> None:
    """Raise PropsError unless a value has the form of a setting of the plan; a CDK token may have any."""
    form = SETTINGS[setting].form
    if is_token(value):
        return
    try:
        form.read(value)
    except UnreadableError as error:
        raise refuse(construct, parameter, value, allowed=form.allowed, fix=str(error)) from None


def check_type(construct: IConstruct, parameter: str, value: Any, kind: type | tuple[type, ...], *, what: str) -> None:
    """Raise PropsError unless a value is of a class. what: the class with its factory, such as Capacity.spot()."""
    if not isinstance(value, kind):
        raise refuse(construct, parameter, value, allowed=what, fix=f"give {what}")


def check_known(construct: IConstruct, parameter: str, value: Any, *, why: str) -> None:
    """Raise PropsError for a CDK token. why: what needs the value at synthesis."""
    if is_token(value):
        known = "a value that is known at synthesis"
        raise refuse(construct, parameter, str(value), allowed=known, fix=f"give the value itself: {why}")


def check_list(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError unless a value is a list. what: of what, such as `a list of ec2.ISecurityGroup`."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        fix = "leave it out, or give an empty list" if value is None else "put it into a list"
        raise refuse(construct, parameter, value, allowed=what, fix=fix)


def check_mapping(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError unless a value is a dict. what: of what, such as `a dict of names and values`."""
    if not isinstance(value, Mapping):
        raise refuse(construct, parameter, value, allowed=what, fix=f"give {what}")


def check_number(
    construct: IConstruct, parameter: str, value: Any, *, smallest: int = 0, largest: int | None = None, why: str
) -> None:
    """Raise PropsError unless a value is a whole number in a range. why: what needs it at synthesis."""
    check_known(construct, parameter, value, why=why)
    range_ = f", {smallest} or more" if largest is None else f" from {smallest} to {largest}"
    allowed = f"a whole number{range_}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse(construct, parameter, value, allowed=allowed, fix=f"give an int, such as {max(smallest, 1)}")
    if value < smallest or (largest is not None and value > largest):
        raise refuse(construct, parameter, value, allowed=allowed, fix="choose one of these")


def check_text(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError unless a value is text that is not blank; a CDK token may be any. what: the text's meaning."""
    if not isinstance(value, str) or not value.strip():
        raise refuse(construct, parameter, value, allowed=what, fix=f"give {what}, as text")


def check_grantee(construct: IConstruct, value: Any) -> None:
    """Raise PropsError unless a grantee is an iam.IGrantable."""
    what = "an iam.IGrantable, such as a role, a function or a fleet"
    check_object(construct, "grantee", value, has="grant_principal", what=what)


def check_switch(construct: IConstruct, parameter: str, value: Any) -> None:
    """Raise PropsError unless a value is a bool."""
    check_type(construct, parameter, value, bool, what="True or False")


def check_same_region(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError for a resource of another region than the construct's, where both are known.

    what: the resource and its use, such as `a VPC`.
    """
    _check_same(construct, parameter, value, Stack.of(construct).region, where="region", what=what)


def check_same_account(construct: IConstruct, parameter: str, value: Any, *, what: str) -> None:
    """Raise PropsError for a resource of another account than the construct's, where both are known."""
    _check_same(construct, parameter, value, Stack.of(construct).account, where="account", what=what)


def _check_same(construct: IConstruct, parameter: str, value: Any, own: str, *, where: str, what: str) -> None:
    """where: the attribute of a resource's environment that is compared, as the message calls it."""
    other: str = getattr(value.env, where)
    if other != own and not Token.is_unresolved(other) and not Token.is_unresolved(own):
        shown = f"{cast(IConstruct, value).node.path} of {other}"
        allowed = f"{what} of {own}, the {where} of the stack"
        raise refuse(construct, parameter, shown, allowed=allowed, fix=f"give {what} of that {where}")
