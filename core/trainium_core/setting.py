"""What a setting is, and the form that several modules of settings share."""

from dataclasses import dataclass

from trainium_core.forms import Form, Pattern

HEX_ID = "([0-9a-f]{8}|[0-9a-f]{17})"
"""What follows the prefix of an id of EC2, FSx or EFS."""

BUCKET_NAME = r"(?=.{3,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
"""Of an S3 bucket: labels of letters, digits and hyphens, set apart by single periods (S3 User Guide, naming rules)."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. `default` is what happens when it is left out, in words; None means it must be given."""

    form: Form
    default: str | None
    meaning: str


def resource_id(prefix: str, what: str) -> Pattern:
    """The id of an existing resource, such as vpc-0123456789abcdef0."""
    return Pattern(f"{prefix}-{HEX_ID}", f"the id of {what}, such as {prefix}-0123456789abcdef0")


def email_address() -> Pattern:
    label = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
    return Pattern(rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{label}(\.{label})+", "an e-mail address")
