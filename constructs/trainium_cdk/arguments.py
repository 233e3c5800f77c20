"""Whether an argument is what a parameter takes, where the CDK would fail later, or not at all."""

from typing import Any

from aws_cdk import Token
from constructs import IConstruct

from trainium_cdk.props_error import refuse
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.setting_schema.forms import UnreadableError


def check_object(construct: IConstruct, parameter: str, value: Any, *, has: str, what: str) -> None:
    """Raise PropsError unless a value has an attribute of the CDK's interface that the parameter takes.

    what: the interface, such as `an ec2.IVpc`.
    """
    if not hasattr(value, has):
        raise refuse(construct, parameter, value, allowed=what, fix=f"give {what}")


def check_setting(construct: IConstruct, parameter: str, value: Any, *, setting: str) -> None:
    """Raise PropsError unless a value has the form of a setting of the plan; a CDK token may have any."""
    form = SETTINGS[setting].form
    if Token.is_unresolved(value):
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
    if Token.is_unresolved(value):
        known = "a value that is known at synthesis"
        raise refuse(construct, parameter, str(value), allowed=known, fix=f"give the value itself: {why}")
