"""New versions of a launch template.

moto decodes the user data of the first version only; a launch from a later one ends in a failed assertion.
"""

from typing import Any

from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.utils import parse_user_data

_moto_create_version = LaunchTemplate.create_version


def create_version(template: Any, data: dict[str, Any], description: str) -> Any:
    given = data.get("UserData")
    decoded = parse_user_data(given) if isinstance(given, str) else given
    return _moto_create_version(template, {**data, "UserData": decoded}, description)
