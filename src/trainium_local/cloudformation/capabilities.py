"""What a caller must acknowledge before CloudFormation takes a template.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html (2026-11-22).
"""

from collections.abc import Collection

from trainium_local.cloudformation.errors import InsufficientCapabilitiesError
from trainium_local.cloudformation.template import Template

#: The resource types that need a capability -> the property that gives one a name of its own, None if none does.
_IAM_TYPES = {
    "AWS::IAM::AccessKey": None,
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Policy": None,
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::IAM::UserToGroupAddition": None,
}
_NO_VALUE = {"Ref": "AWS::NoValue"}


def needed(template: Template) -> list[str]:
    """CAPABILITY_IAM, or CAPABILITY_NAMED_IAM, which includes it, for what the template would change in IAM."""
    found = [one for one in template.resources.values() if one["Type"] in _IAM_TYPES]
    names = [one.get("Properties", {}).get(_IAM_TYPES[one["Type"]], _NO_VALUE) for one in found]
    if any(name != _NO_VALUE for name in names):
        return ["CAPABILITY_NAMED_IAM"]
    return ["CAPABILITY_IAM"] if found else []


def view(template: Template) -> dict[str, object]:
    """What ValidateTemplate and GetTemplateSummary say of it."""
    types = ", ".join(sorted({one["Type"] for one in template.resources.values()} & _IAM_TYPES.keys()))
    reason = f"The following resource(s) require capabilities: [{types}]" if types else None
    return {"Capabilities": needed(template), "CapabilitiesReason": reason}


def check(template: Template, given: Collection[str], *, expands: bool) -> None:
    """Raises InsufficientCapabilitiesError. `expands`: the request runs the template's transforms at once."""
    missing = [one for one in needed(template) if not {one, "CAPABILITY_NAMED_IAM"} & set(given)]
    if expands and template.transforms and "CAPABILITY_AUTO_EXPAND" not in given:
        missing.append("CAPABILITY_AUTO_EXPAND")
    if missing:
        raise InsufficientCapabilitiesError(f"Requires capabilities : [{', '.join(missing)}]")
