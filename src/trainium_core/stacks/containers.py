"""Resources of a template whose content blocks the deletion of their stack."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from trainium_core.facts import DATA


@dataclass(frozen=True, kw_only=True)
class Container:
    """A resource type with content that CloudFormation does not delete.

    Attributes:
        name: What AWS calls the resource.
        source: The page that says so.
        setting: The property with which the content is deleted too, if it is true.
        tags: The content is deleted before the resource if one of these tags is true.
        parameter: How an app of the CDK chooses the setting or a tag; None if there is neither.
        command: Command of the AWS CLI that empties the resource NAME, if one is enough.
    """

    name: str
    source: str
    setting: str | None = None
    tags: Sequence[str] = ()
    parameter: str | None = None
    command: str | None = None

    def command_for(self, resource_id: str) -> str | None:
        """The command that empties a resource."""
        return self.command and self.command.replace("NAME", resource_id)


@cache
def containers() -> Mapping[str, Container]:
    """The containers of data/containers.toml, by CloudFormation's type."""
    types: dict[str, dict[str, Any]] = tomllib.loads((DATA / "containers.toml").read_text(encoding="utf-8"))["types"]
    return {kind: Container(**entry) for kind, entry in types.items()}


def must_be_empty(resource: Mapping[str, Any]) -> bool:
    """Whether CloudFormation deletes a resource of a template only if it is empty, and nothing empties it."""
    container, properties = containers().get(resource.get("Type", "")), resource.get("Properties", {})
    if container is None:
        return False
    tags: Any = properties.get("Tags")
    listed = cast("list[Any]", tags) if isinstance(tags, list) else []
    is_emptied = any(tag.get("Key") in container.tags and tag.get("Value") == "true" for tag in listed)
    return not is_emptied and properties.get(container.setting) not in (True, "true")
