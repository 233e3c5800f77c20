"""A setting, the declaration of settings in a section, and forms that several sections share."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, overload

from trainium_core.setting_schema.forms import Form, Pattern, as_written

AtDestroy = Literal["destroy", "retain"]
AT_DESTROY: tuple[AtDestroy, ...] = get_args(AtDestroy)

HEX_ID = "([0-9a-f]{8}|[0-9a-f]{17})"
"""A regular expression for the part after the prefix of an EC2, FSx or EFS ID."""

BUCKET_NAME = r"(?=[^/]{3,63}(?:/|$))[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
"""A regular expression for an S3 bucket name (S3 User Guide, naming rules).

It accepts 3 to 63 characters in labels of lowercase letters, digits and hyphens, separated by periods. The name must be
followed by a slash or the end of the text.
"""

METADATA_KEY = "setting"
"""The key of the Setting in the metadata of a dataclass field."""

_Value = TypeVar("_Value")
_Class = TypeVar("_Class")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting.

    Attributes:
        key: The name in cdk.json, without the prefix.
        form: The form of the value.
        meaning: The meaning of the setting, for the reference and for messages.
        default: Value if the setting is omitted.
        default_text: Description of the default; None if the setting is required.
        replaces_nodes: Whether a deployment with another value replaces the running nodes.
    """

    key: str
    form: Form
    meaning: str
    default: Any = None
    default_text: str | None
    replaces_nodes: bool = False


@overload
def setting(key: str, form: Form, *, meaning: str, replaces_nodes: bool = ...) -> Any: ...
@overload
def setting(
    key: str,
    form: Form,
    *,
    meaning: str,
    default: _Value,
    default_text: str = ...,
    replaces_nodes: bool = ...,
) -> _Value: ...
@overload
def setting(
    key: str, form: Form, *, meaning: str, default_factory: Callable[[], _Value], default_text: str, repr: bool = ...
) -> _Value: ...
def setting(
    key: str,
    form: Form,
    *,
    meaning: str,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    default_text: str | None = None,
    replaces_nodes: bool = False,
    repr: bool = True,
) -> Any:
    """Declare a field of a section as a setting. A setting without a default is required.

    Args:
        key: The name in cdk.json, without the prefix.
        form: The form of the value.
        meaning: The meaning of the setting, for the reference and for messages.
        default: Value if the setting is omitted.
        default_factory: Creates the default, instead of `default`, if the default is mutable.
        default_text: Description of the default, in which `{}` stands for its value. If omitted, the value itself, or
            `none` for None.
        replaces_nodes: Whether a deployment with another value replaces the running nodes.
        repr: Whether the value is part of the plan's repr.

    Returns:
        The dataclass field.
    """
    is_required = default is MISSING and default_factory is MISSING
    value: Any = None if default is MISSING else default
    if default_factory is not MISSING:
        value = default_factory()
    text = (default_text or ("none" if value is None else "{}")).format(as_written(value))
    declared = Setting(
        key=key,
        form=form,
        meaning=meaning,
        default=value,
        default_text=None if is_required else text,
        replaces_nodes=replaces_nodes,
    )
    return field(default=default, default_factory=default_factory, repr=repr, metadata={METADATA_KEY: declared})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting, field))
def section(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass of settings, each declared with setting()."""
    return dataclass(frozen=True, kw_only=True)(cls)


def resource_id(prefix: str, what: str) -> Pattern:
    """The ID of an existing resource, such as vpc-0123456789abcdef0."""
    return Pattern(f"{prefix}-{HEX_ID}", f"the ID of {what}, such as {prefix}-0123456789abcdef0")


def regional_arn(service: str, resource: str, what: str) -> Pattern:
    """The ARN of an existing resource, whose part after the account matches the regular expression `resource`."""
    return Pattern(f"arn:aws[a-z-]*:{service}:[a-z0-9-]+:[0-9]{{12}}:{resource}", what)


def email_address() -> Pattern:
    label = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
    return Pattern(rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{label}(\.{label})+", "an e-mail address")
