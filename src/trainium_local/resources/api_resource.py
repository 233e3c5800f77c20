"""A resource type as a table row: the API calls that create, change, read and delete it.

Properties are passed to the calls under their own names, except those in `renamed`. A dot denotes a nested argument
("Attributes.VisibilityTimeout"). `physical_id` and fields of type `Texts` are text templates, see `_variables`.
"""

import dataclasses
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.registry import (
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    ResourceRequest,
    ResourceType,
    UnchangeableError,
)
from trainium_local.resources.settings import ResourceSetting
from trainium_local.resources.texts import PropertyValues, Texts, fill, fill_known, put
from trainium_local.tags import tag_values


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """The calls that change a resource's tags.

    Attributes:
        identified_by: Arguments that identify the resource in both calls.
        tag: The call that sets tags.
        untag: The call that removes tags.
        tags: Argument of `tag` with the tags.
        keys: Argument of `untag` with the keys. If empty, the argument is `tags`.
    """

    identified_by: Texts
    tag: str = "TagResource"
    untag: str = "UntagResource"
    tags: str = "Tags"
    keys: str = "TagKeys"


@dataclass(frozen=True, kw_only=True)
class ApiResource(ResourceType):
    """A resource type that a service's own API provisions.

    Attributes:
        service: Name of the service in boto3.
        physical_id: The physical ID.
        create_call: The call that creates the resource.
        attributes: The results of `Fn::GetAtt`.
        arguments: Further arguments of `create_call`.
        adapted: The properties that `adapt` converts to the API's form.
        renamed: Argument by property, if their names differ.
        name_property: The property that is generated if the template does not set it.
        name_limit: Maximum length of a generated name.
        lowercase_name: Whether a generated name is in lower case.
        settings: Properties with separate calls.
        update_call: The call that changes the resource.
        update_arguments: Further arguments of `update_call`.
        delete_call: The call that deletes the resource.
        identified_by: Arguments that identify the resource in all calls except `create_call` and those of `tagging`.
        tagging: The calls that change tags, if any.
        ec2_tag_type: The type in TagSpecifications, for resources of EC2.
        read_call: The call that describes the resource.
        read_path: The resource in the response of `read_call`.
        read_attributes: Further results of `Fn::GetAtt`. `{read}` is the description of the resource.
    """

    service: str
    physical_id: str
    create_call: str = ""
    attributes: Texts = field(default_factory=dict[str, Any])
    arguments: Texts = field(default_factory=dict[str, Any])
    adapted: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    name_property: str = ""
    name_limit: int = 128
    lowercase_name: bool = False
    settings: tuple[ResourceSetting, ...] = ()
    update_call: str = ""
    update_arguments: Texts = field(default_factory=dict[str, Any])
    delete_call: str = ""
    identified_by: Texts = field(default_factory=dict[str, Any])
    tagging: Tagging | None = None
    ec2_tag_type: str = ""
    read_call: str = ""
    read_path: tuple[str | int, ...] = ()
    read_attributes: Texts = field(default_factory=dict[str, Any])

    def adapt(self, properties: Properties) -> Properties:
        """Return the properties in the API's form."""
        return properties

    def create(self, request: ResourceRequest) -> Provisioned:
        variables = _variables(request) | {"name": self.given_name(request) or self._generated_name(request)}
        arguments = self._create_arguments(request, variables)
        answer = self.call(request, self.create_call, arguments) if self.create_call else {}
        variables |= {"answer": answer}
        created = Provisioned(physical_id=str(fill(self.physical_id, variables)))
        variables |= {"id": created.physical_id}
        if self.name_property:
            created.attributes[self.name_property] = variables["name"]  # such as QueueName
        created.attributes |= fill_known(self.attributes, variables)
        try:
            self.apply_settings(request, created, None)
            self.after_create(request, created, answer)
        except Exception as error:
            raise ProvisioningError(api.failure_reason(error), leftover=created) from error
        return created

    def given_name(self, request: ResourceRequest) -> str:
        """Return the name in the properties, or an empty string."""
        value: Any = request.properties
        for step in self.name_property.split("."):
            value = value.get(step) or {}
        return str(value or "")

    def _generated_name(self, request: ResourceRequest) -> str:
        generated = request.generated_name(self.name_limit)
        return generated.lower() if self.lowercase_name else generated

    def _create_arguments(self, request: ResourceRequest, variables: Mapping[str, Any]) -> dict[str, Any]:
        arguments = self._arguments(request)
        for path, text in self.arguments.items():
            put(arguments, path, fill(text, variables))
        if self.name_property:
            put(arguments, self.name_property, variables["name"])
            put(arguments, self.renamed.get(self.name_property, self.name_property), variables["name"])
        if self.ec2_tag_type and request.properties.get("Tags"):
            tags = request.properties["Tags"]
            arguments["TagSpecifications"] = [{"ResourceType": self.ec2_tag_type, "Tags": tags}]
        return arguments

    def _arguments(self, request: ResourceRequest) -> dict[str, Any]:
        arguments = self.adapt(dict(request.properties))
        for old, new in self.renamed.items():
            if old in arguments:
                put(arguments, new, arguments[old])
        return arguments

    def after_create(self, request: ResourceRequest, created: Provisioned, answer: dict[str, Any]) -> None:
        """Set tags that the creating call does not support, and read attributes that it does not return."""
        schema = request.schema
        if self.tagging and schema.tag_property and not self._creates_tags(request, schema.tag_property):
            self._change_tags(request, created, None, request.properties.get(schema.tag_property))
        if self.read_attributes.keys() - created.attributes.keys():
            created.attributes = self._attributes_read(request, created) | created.attributes

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        changed = _changed(request.properties, previous)
        self._refuse_unchangeable(request, changed)
        tags = request.schema.tag_property if self.tagging else None
        if self.update_call and changed - self._setting_names() - {tags}:
            more = fill(self.update_arguments, _variables(request, current))
            arguments = self._arguments(request)
            for path, value in more.items():
                put(arguments, path, None if value == "" else value)
            self.call(request, self.update_call, arguments | self.identity(request, current))
        self.apply_settings(request, current, previous)
        if tags in changed:
            self._change_tags(request, current, previous.get(tags), request.properties.get(tags))
        attributes = dict(current.attributes)
        if self.update_call and self.read_attributes:
            attributes |= self._attributes_read(request, current)
        from_properties = {key: text for key, text in self.attributes.items() if "{properties" in str(text)}
        attributes |= fill_known(from_properties, _variables(request, current))
        return Provisioned(physical_id=current.physical_id, attributes=attributes)

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        properties = self.adapt(dict(request.properties))
        calls = [
            (operation, self._filled(texts, request, current, value))
            for setting in self.settings
            if setting.emptied
            for operation, texts, value in setting.calls(properties.get(setting.property_name) or [], [])
        ]
        identity = self.identity(request, current)
        for operation, arguments in [*calls, *([(self.delete_call, {})] if self.delete_call else [])]:
            with api.ignoring_missing():
                self.call(request, operation, identity | arguments)

    def call(self, request: ResourceRequest, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call the service in the resource's region."""
        return api.call(self.service, operation, request.region, arguments)

    def identity(self, request: ResourceRequest, current: Provisioned) -> dict[str, Any]:
        """Return the arguments that identify the resource, without those of omitted properties."""
        filled = fill_known(self.identified_by, _variables(request, current))
        return {name: value for name, value in filled.items() if value != ""}

    def apply_settings(self, request: ResourceRequest, current: Provisioned, previous: Properties | None) -> None:
        """Make the calls of the properties in `settings` that changed.

        Args:
            request: The resource.
            current: Its physical ID and attributes.
            previous: The properties before; None for a new resource.
        """
        after, before = self.adapt(dict(request.properties)), self.adapt(dict(previous)) if previous else {}
        for setting in self.settings:
            new, old = after.get(setting.property_name), before.get(setting.property_name)
            if new == old or (setting.part_of_creation and previous is None):
                continue
            for operation, texts, value in setting.calls(old, new):
                identity = self.identity(request, current)
                self.call(request, operation, identity | self._filled(texts, request, current, value))

    def _filled(self, texts: Any, request: ResourceRequest, current: Provisioned, value: Any) -> dict[str, Any]:
        return fill(
            texts, _variables(request, current) | {"value": PropertyValues(value) if isinstance(value, dict) else value}
        )

    def _setting_names(self) -> set[str]:
        return {setting.property_name for setting in self.settings}

    def unsupported(self, properties: Collection[str]) -> list[str]:
        """Return the names of the properties that neither `create_call` nor a setting applies."""
        if not self.create_call:
            return []
        arguments = api.argument_names(self.service, self.create_call)
        applied = self._setting_names() | self.adapted | self.renamed.keys() | arguments | {self.name_property}
        accepted = {name.lower() for name in applied} | ({"tags"} if self.tagging else set())
        return sorted(name for name in properties if name.lower() not in accepted)

    def _refuse_unchangeable(self, request: ResourceRequest, changed: set[str]) -> None:
        """Raise UnchangeableError for changed properties that no call can change."""
        changeable = {name.lower() for name in self._setting_names()}
        if self.update_call:
            arguments = api.argument_names(self.service, self.update_call)
            changeable |= {name.lower() for name in arguments | self.adapted}
        if self.tagging:
            changeable.add((request.schema.tag_property or "").lower())
        arguments = {name: self.renamed.get(name, name).split(".")[0].lower() for name in changed}
        fixed = sorted(name for name, argument in arguments.items() if not {argument, name.lower()} & changeable)
        if fixed:
            raise UnchangeableError(
                f"The embedded AWS cannot change [{', '.join(fixed)}] of an existing {request.resource_type}"
            )

    def _creates_tags(self, request: ResourceRequest, tag_property: str) -> bool:
        names = api.argument_names(self.service, self.create_call)
        argument = self.renamed.get(tag_property, tag_property).split(".")[0]
        return bool(self.ec2_tag_type) or argument.lower() in {name.lower() for name in names}

    def _change_tags(self, request: ResourceRequest, current: Provisioned, old: Any, new: Any) -> None:
        tagging, before, after = self.tagging, tag_values(old), tag_values(new)
        assert tagging is not None
        identity = fill(tagging.identified_by, _variables(request, current))
        gone, changed = before.keys() - after.keys(), {k: v for k, v in after.items() if before.get(k) != v}
        if gone:
            named = {tagging.keys: sorted(gone)} if tagging.keys else {tagging.tags: [{"Key": key} for key in gone]}
            self.call(request, tagging.untag, identity | named)
        if changed:
            # the key of a pair is Key, key or TagKey; only members of the service's shape are sent
            pairs = [{"Key": k, "Value": v, "TagKey": k, "TagValue": v} for k, v in changed.items()]
            self.call(request, tagging.tag, identity | {tagging.tags: pairs})

    def _attributes_read(self, request: ResourceRequest, current: Provisioned) -> dict[str, Any]:
        return fill_known(self.read_attributes, {"read": self.describe(request, current)})

    def describe(self, request: ResourceRequest, current: Provisioned) -> dict[str, Any]:
        """Return the service's description of the resource, or an empty dict.

        Raises:
            ClientError: The call fails for another reason than that the resource does not exist.
        """
        with suppress(LookupError, TypeError), api.ignoring_missing():
            answer: Any = self.call(request, self.read_call, self.identity(request, current))
            for step in self.read_path:
                answer = answer[step]
            return answer
        return {}


class AttachedResource(ApiResource):
    """A resource that exists only as part of another one. It is created, changed and deleted by its settings."""

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        if self.given_name(request) not in ("", current.physical_id):
            raise NeedsReplacementError
        if _changed(request.properties, previous) <= self._setting_names():
            self.apply_settings(request, current, previous)
        else:
            self.delete(dataclasses.replace(request, properties=previous), current)
            self.apply_settings(request, current, None)
        return current


def _changed(new: Properties, old: Properties) -> set[str]:
    return {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}


def _variables(request: ResourceRequest, current: Provisioned | None = None) -> dict[str, Any]:
    """Return the values for text templates, except for `read_attributes`. Callers add `name`, `answer` or `value`."""
    variables = {
        "account": request.account,
        "region": request.region,
        "logical_id": request.logical_id,
        "properties": PropertyValues(request.properties),
    }
    if current is not None:
        variables |= {"id": current.physical_id, "attributes": current.attributes}
    return variables
