"""New versions of a launch template.

moto decodes the user data of the first version only; a launch from a later one ends in a failed assertion.
"""

from typing import Any

from moto.ec2.utils import parse_user_data


def create_version(original: Any, template: Any, data: dict[str, Any], description: str) -> Any:
    given = data.get("UserData")
    decoded = parse_user_data(given) if isinstance(given, str) else given
    return original(template, {**data, "UserData": decoded}, description)
