"""A resource type told as a table row: the API calls that create, change and delete it.

Texts such as "{id}", "{answer[Vpc][VpcId]}" or "{properties[GroupName]}" are filled in from the resource: its physical
id, its `name` (given or generated), what the create call answered, its properties, attributes, account and region.
Properties go into the calls under their own names, but for those `renamed`, with dots where an argument lies inside of
another ("Attributes.VisibilityTimeout"); `adapt` puts others, named in `adapted`, into the API's form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from trainium_local.resources import api, schemas
from trainium_local.resources.generic import made_up
from trainium_local.resources.registry import (
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
)
from trainium_local.resources.settings import Members, OwnCalls

Texts = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """How the tags of an existing resource are changed. `identified_by` names the resource in both calls."""

    identified_by: Mapping[str, Any]
    tag: str = "TagResource"
    untag: str = "UntagResource"
    tags: str = "Tags"
    keys: str = "TagKeys"


@dataclass(frozen=True, kw_only=True)
class ApiResource:
    """A resource type that a service's own API provisions."""

    service: str
    create_call: str
    physical_id: str
    attributes: Texts = field(default_factory=dict[str, str])
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    adapt: Callable[[Properties], Properties] = lambda properties: properties
    adapted: frozenset[str] = frozenset()
    renamed: Texts = field(default_factory=dict[str, str])
    id_prefix: str = ""
    name_property: str = ""
    name_limit: int = 128
    lowercase_name: bool = False
    settings: tuple[OwnCalls, ...] = ()
    empty_before_delete: tuple[Members, ...] = ()
    update_call: str = ""
    update_arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete_call: str = ""
    identified_by: Texts = field(default_factory=dict[str, str])
    tagging: Tagging | None = None
    ec2_tag_type: str = ""

    def create(self, request: Request) -> Provisioned:
        facts = facts_of(request) | {"name": self.given_name(request) or self.generated_name(request)}
        answer = api.call(self.service, self.create_call, request.region, self._create_arguments(request, facts))
        facts |= {"answer": answer}
        created = Provisioned(
            physical_id=fill(self.physical_id, facts).removeprefix(self.id_prefix), note=self._note(request)
        )
        try:
            facts |= {"id": created.physical_id}
            created.attributes |= self._create_attributes(facts)
            self._apply_settings(request, created, None)
            self.after_create(request, created, answer)
            schema = schemas.find(request.resource_type, request.region)
            for path in schema.attributes if schema else ():
                created.attributes.setdefault(path, made_up(path, request, created.physical_id))
        except Exception as error:
            raise ProvisioningError(api.words(error), leftover=created) from error
        return created

    def _create_attributes(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {key: fill(text, facts) for key, text in self.attributes.items()}

    def generated_name(self, request: Request) -> str:
        """The name of a resource that the template does not name."""
        generated = request.generated_name(self.name_limit)
        return generated.lower() if self.lowercase_name else generated

    def given_name(self, request: Request) -> str:
        """The name in the properties; empty when they give none."""
        return str(request.properties.get(self.name_property) or "") if self.name_property else ""

    def _create_arguments(self, request: Request, facts: Mapping[str, Any]) -> dict[str, Any]:
        arguments = self._arguments(request)
        for path, text in self.arguments.items():
            _put(arguments, path, fill(text, facts))
        if self.name_property:
            arguments[self.name_property] = facts["name"]
            _put(arguments, self.renamed.get(self.name_property, self.name_property), facts["name"])
        if self.ec2_tag_type and request.properties.get("Tags"):
            tags = request.properties["Tags"]
            arguments["TagSpecifications"] = [{"ResourceType": self.ec2_tag_type, "Tags": tags}]
        return arguments

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments = self.adapt(dict(request.properties))
        for old, new in self.renamed.items():
            if old in arguments:
                _put(arguments, new, arguments[old])
        return arguments

    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        """What a type needs beyond its table row."""

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        new = request.properties
        changed = {key for key in new.keys() | previous.keys() if new.get(key) != previous.get(key)}
        tags = self._tag_property(request) if self.tagging else None
        rest = changed - {setting.property_name for setting in (*self.settings, *self.empty_before_delete)} - {tags}
        if rest and not self.update_call:
            raise NeedsReplacementError
        facts = facts_of(request, current)
        if rest:
            arguments = self._arguments(request) | fill(self.update_arguments, facts)
            arguments |= self._identity(request, current)
            api.call(self.service, self.update_call, request.region, arguments)
        self._apply_settings(request, current, previous)
        if tags in changed:
            self._change_tags(request, current, previous.get(tags), new.get(tags))
        from_properties = {key: text for key, text in self.attributes.items() if "{properties" in text}
        attributes = {**current.attributes, **fill(from_properties, facts)}
        return Provisioned(physical_id=current.physical_id, attributes=attributes, note=self._note(request))

    def delete(self, request: Request, current: Provisioned) -> None:
        identity = self._identity(request, current)
        calls = [
            (operation, identity | arguments)
            for members in self.empty_before_delete
            for operation, arguments in members.calls(request.properties.get(members.property_name) or [], [])
        ]
        for operation, arguments in [*calls, *([(self.delete_call, identity)] if self.delete_call else [])]:
            try:
                api.call(self.service, operation, request.region, arguments)
            except ClientError as error:
                if not api.says_gone(error):
                    raise

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        return fill(self.identified_by, facts_of(request, current))

    def _apply_settings(self, request: Request, current: Provisioned, previous: Properties | None) -> None:
        """Make the calls of the properties that have their own; `previous` is None when the resource is new."""
        for setting in (*self.settings, *self.empty_before_delete):
            new, old = request.properties.get(setting.property_name), (previous or {}).get(setting.property_name)
            if new == old or (setting.part_of_creation and previous is None):
                continue
            for operation, arguments in setting.calls(old, new):
                identity = self._identity(request, current)
                api.call(self.service, operation, request.region, identity | arguments)

    def not_applied(self, request: Request) -> list[str]:
        """The given properties that no call takes: AWS would heed them, the embedded AWS does not."""
        own_calls = {setting.property_name for setting in (*self.settings, *self.empty_before_delete)}
        arguments = api.argument_names(self.service, self.create_call, request.region)
        applied = own_calls | self.adapted | self.renamed.keys() | arguments | {self.name_property}
        taken = {name.lower() for name in applied} | ({"tags"} if self.ec2_tag_type else set())
        return sorted(name for name in request.properties if name.lower() not in taken)

    def _note(self, request: Request) -> str | None:
        names = self.not_applied(request)
        return f"The embedded AWS does not apply [{', '.join(names)}]." if names else None

    def _tag_property(self, request: Request) -> str | None:
        schema = schemas.find(request.resource_type, request.region)
        return schema.tag_property if schema else None

    def _change_tags(self, request: Request, current: Provisioned, old: Any, new: Any) -> None:
        tagging, before, after = self.tagging, _as_map(old), _as_map(new)
        assert tagging is not None
        identity = fill(tagging.identified_by, facts_of(request, current))
        gone, changed = before.keys() - after.keys(), {k: v for k, v in after.items() if before.get(k) != v}
        if gone and tagging.keys:
            api.call(self.service, tagging.untag, request.region, identity | {tagging.keys: sorted(gone)})
        elif gone:
            tags = [{"Key": key} for key in sorted(gone)]
            api.call(self.service, tagging.untag, request.region, identity | {tagging.tags: tags})
        if changed:
            # the key of a pair is Key, key or TagKey; only those that the service's shape knows are sent
            pairs = [{"Key": k, "Value": v, "TagKey": k, "TagValue": v} for k, v in changed.items()]
            api.call(self.service, tagging.tag, request.region, identity | {tagging.tags: pairs})


def _put(arguments: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for step in outer:
        arguments = arguments.setdefault(step, {})
    arguments[last] = value


def _as_map(tags: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else dict(tags or {})


class _Known(dict[str, Any]):
    """Properties, of which one that is not given reads as nothing."""

    def __missing__(self, key: str) -> str:
        return ""


def facts_of(request: Request, current: Provisioned | None = None) -> dict[str, Any]:
    """What the texts of a row may name."""
    known = {"account": request.account, "region": request.region, "properties": _Known(request.properties)}
    if current is not None:
        known |= {"id": current.physical_id, "attributes": current.attributes}
    return known


def fill(text: Any, facts: Mapping[str, Any]) -> Any:
    """The text, or the texts in a map or list, with the facts in their places. Raises KeyError if one is not there."""
    if isinstance(text, str):
        return text.format_map(facts)
    if isinstance(text, Mapping):
        return {key: fill(item, facts) for key, item in text.items()}
    if isinstance(text, list):
        return [fill(item, facts) for item in text]
    return text
