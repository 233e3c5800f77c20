"""A type whose API calls are derived from its registry schema.

A resource that its service in the embedded AWS cannot create, for the service's own shortcomings, is stored only, and
its event says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

import jmespath
from botocore.exceptions import ClientError

from trainium_local.resources import api, schemas
from trainium_local.resources.api_resource import ApiResource, Texts, facts_of, fill
from trainium_local.resources.generic import STORE
from trainium_local.resources.registry import (
    Actual,
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Request,
)


@dataclass(frozen=True, kw_only=True)
class DerivedResource(ApiResource):
    """A row of derived_types.toml.

    `read_path` is where the answer of `read_call` holds the resource, `read_attributes` where that holds attributes.
    """

    read_call: str = ""
    read_path: tuple[str | int, ...] = ()
    read_attributes: Texts = field(default_factory=dict[str, str])

    def create(self, request: Request) -> Provisioned:
        try:
            return super().create(request)
        except Exception as error:
            if not api.is_shortcoming(error.__cause__ or error):
                raise
            if isinstance(error, ProvisioningError) and error.leftover is not None:
                super().delete(request, error.leftover)
            stored = STORE.create(request)
            return dataclasses.replace(stored, note=f"{stored.note} The call failed: {api.words(error)}")

    def generated_name(self, request: Request) -> str:
        """As super() does, but in a form that the schema allows; a FIFO queue or topic has its ending."""
        name = super().generated_name(request)
        if any(str(request.properties.get(kind)).lower() == "true" for kind in ("FifoQueue", "FifoTopic")):
            return f"{name}.fifo"
        schema = schemas.find(request.resource_type, request.region)
        assert schema is not None, "derived from its schema"
        forms = [name, name.lower(), name.replace("-", "_"), name.replace("-", ""), name.replace("-", "").lower()]
        problems = {form: [str(one) for one in schema.problems({self.name_property: form})] for form in forms}
        place = f"#/{self.name_property}:"
        return next((form for form in forms if not any(one.startswith(place) for one in problems[form])), name)

    def _create_attributes(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        named = {self.name_property: facts["name"]} if self.name_property else {}  # such as QueueName
        return named | _filled(self.attributes, facts)

    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        schema = schemas.find(request.resource_type, request.region)
        assert schema is not None, "derived from its schema"
        if self.tagging and schema.tag_property and not self._creates_tags(request, schema.tag_property):
            self._change_tags(request, created, None, request.properties.get(schema.tag_property))
        missing = {*schema.attributes, *self.read_attributes} - created.attributes.keys()
        if not missing:
            return
        try:
            found = {"read": self._found(request, created)}
        except Exception:
            found = {}
        texts = {path: text for path, text in self.read_attributes.items() if path in missing}
        created.attributes |= _filled(texts, found)

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        if self._is_stored(request, current):
            return STORE.update(request, current, previous)
        fixed = self._fixed(request, previous)
        if fixed and not self.given_name(request):
            raise NeedsReplacementError
        # a resource with a name of the template's cannot be replaced: the name is taken
        old_values = {name: previous[name] for name in fixed if name in previous}
        kept = {name: value for name, value in request.properties.items() if name not in fixed} | old_values
        updated = super().update(dataclasses.replace(request, properties=kept), current, previous)
        note = f"The embedded AWS does not apply the change of [{', '.join(sorted(fixed))}]." if fixed else None
        return dataclasses.replace(updated, note=" ".join(filter(None, (updated.note, note))) or None)

    def delete(self, request: Request, current: Provisioned) -> None:
        (STORE if self._is_stored(request, current) else super()).delete(request, current)

    def read(self, request: Request, physical_id: str) -> Actual | None:
        schema = schemas.find(request.resource_type, request.region)
        assert schema is not None, "derived from its schema"
        identifiers = {path: physical_id for path in schema.primary_identifier if len(schema.primary_identifier) == 1}
        current = Provisioned(physical_id=physical_id, attributes=identifiers)
        found = self._found(request, current)
        if not found:
            return None
        current.attributes |= _filled(self.read_attributes, {"read": found})
        shown = {name.lower(): value for name, value in found.items()}
        names = {name: self.renamed.get(name, name).rsplit(".", 1)[-1].lower() for name in schema.properties}
        properties = schema.spelled({name: shown[place] for name, place in names.items() if place in shown})
        return Actual(provisioned=current, properties=properties)

    def _found(self, request: Request, current: Provisioned) -> dict[str, Any]:
        """The resource as its service describes it, empty if there is none. Raises ClientError if it does not say."""
        identity = {
            name: value for name, value in _filled(self.identified_by, facts_of(request, current)).items() if value
        }
        try:
            answer: Any = api.call(self.service, self.read_call, request.region, identity)
            for step in self.read_path:
                answer = answer[step]
        except (LookupError, TypeError):
            return {}
        except ClientError as error:
            if not api.says_gone(error):
                raise
            return {}
        return answer

    def _creates_tags(self, request: Request, tag_property: str) -> bool:
        names = api.argument_names(self.service, self.create_call, request.region)
        argument = self.renamed.get(tag_property, tag_property).split(".")[0]
        return bool(self.ec2_tag_type) or argument.lower() in {name.lower() for name in names}

    def _is_stored(self, request: Request, current: Provisioned) -> bool:
        return current.physical_id in STORE.kept(request.region, request.resource_type)

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        """Without the properties that are not given."""
        identity = super()._identity(request, current)
        return {name: value for name, value in identity.items() if value != ""}

    def _fixed(self, request: Request, previous: Properties) -> set[str]:
        """The changed properties that no call changes."""
        new = request.properties
        changed = {name for name in new.keys() | previous.keys() if new.get(name) != previous.get(name)}
        known = api.argument_names(self.service, self.update_call, request.region) if self.update_call else set[str]()
        taken = {name.lower() for name in known} | {own.property_name.lower() for own in self.settings}
        if self.tagging:
            taken.add((self._tag_property(request) or "").lower())
        arguments = {name: self.renamed.get(name, name).split(".")[0].lower() for name in changed}
        return {name for name, argument in arguments.items() if not {argument, name.lower()} & taken}


def _filled(texts: Texts, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The texts whose facts are all there."""
    filled: dict[str, Any] = {}
    for name, text in texts.items():
        try:
            filled[name] = _value(text, facts)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return {name: value for name, value in filled.items() if value is not None}


def _value(text: Any, facts: Mapping[str, Any]) -> Any:
    """What a text names: a list or a map as it is, scalars as text. Without braces it is JMESPath on what was read."""
    if isinstance(text, str) and "read" in facts and "{" not in text:
        return jmespath.search(text, facts["read"])
    if not isinstance(text, str) or not text.startswith("{") or text.count("{") > 1:
        return fill(text, facts)
    value = Formatter().get_field(text[1:-1], (), facts)[0]
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, dict | list | None) else str(value)
