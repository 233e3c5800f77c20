"""The sweep: each derived row has to create, read back, tag and delete a minimal instance in the embedded AWS."""

from __future__ import annotations

import dataclasses
import re
import signal
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from tools.resource_types.derive import derive
from tools.resource_types.models import Row, Type
from tools.resource_types.refs import ref_of
from tools.resource_types.samples import Sampler
from trainium_local.resources import api, registry, schemas, types
from trainium_local.resources.registry import Provisioned, Request
from trainium_local.server import Settings, serve

REGION, ACCOUNT = "us-west-2", "123456789012"
_SECONDS = 20


class FailedError(Exception):
    """The row did not pass; the message says at which step."""


def start_server() -> None:
    """The embedded AWS in a thread of this process."""
    ready = threading.Event()
    threading.Thread(
        target=lambda: serve(Settings(), ready=lambda _health, _connection: ready.set()), daemon=True
    ).start()
    ready.wait()


def document_of(resource_type: str) -> dict[str, Any]:
    schema = schemas.find(resource_type, REGION)
    if schema is None:
        raise KeyError(resource_type)
    return schema.document


def type_of(resource_type: str) -> Type:
    document = document_of(resource_type)
    identifier = [one.removeprefix("/properties/").replace("/", ".") for one in document.get("primaryIdentifier", ())]
    return Type(document, ref_of(resource_type, identifier))


def derived_rows(resource_type: str) -> list[Row]:
    """The rows to try for a type; none if there is no such type."""
    try:
        document = document_of(resource_type)
    except KeyError:
        return []
    return list(derive(document, type_of(resource_type).identifier))


class Sweep:
    """Rows that passed, and why others did not."""

    def __init__(self) -> None:
        self.passed: dict[str, Row] = {}
        self.failed: dict[str, str] = {}
        self._neighbours: dict[str, Provisioned | None] = {}

    def run(self, resource_type: str) -> bool:
        """Whether a row of the type passes; the first that does is kept."""
        if resource_type in self.passed:
            return True
        if resource_type in self.failed:
            return False
        reasons: list[str] = []
        self.failed[resource_type] = "needs itself"
        for row in derived_rows(resource_type):
            try:
                self._verify(resource_type, row)
            except Exception as error:
                reasons.append(f"{row['create_call']}/{row['read_call']}: {_short(error)}")
            else:
                self.passed[resource_type] = row
                del self.failed[resource_type]
                return True
        self.failed[resource_type] = " | ".join(reasons) or "no row"
        return False

    def neighbour(self, resource_type: str, text: str) -> str | None:
        """Of another resource, made for the purpose: its Ref for "{id}", else an attribute; None if it has none."""
        if resource_type not in self._neighbours:
            self._neighbours[resource_type] = None
            self._neighbours[resource_type] = self._make(resource_type)
        found = self._neighbours[resource_type]
        if found is None:
            return None
        kind, name = resource_type.rsplit("::", 1)[-1], text.strip("{}")
        if name == "id":
            return found.physical_id
        for key in (name, f"{kind}{name}"):
            if key in found.attributes:
                return str(found.attributes[key])
        return found.physical_id

    def _make(self, resource_type: str) -> Provisioned | None:
        provisioner: Any = None
        row = _NO_ROW
        if resource_type in hand_written():
            provisioner = registry.find(resource_type, REGION)
        elif self.run(resource_type):
            row = self.passed[resource_type]
            provisioner = types.row_type(resource_type, row)
        if provisioner is None:
            return None
        properties = Sampler(type_of(resource_type), row, self.neighbour).sample()
        return provisioner.create(request_for(resource_type, properties))

    def _verify(self, resource_type: str, row: Row) -> None:
        """Raises FailedError or what a call raises."""
        type_ = type_of(resource_type)
        properties = Sampler(type_, row, self.neighbour).sample()
        other = _renamed_copy(properties, type_)
        signal.signal(signal.SIGALRM, _too_late)
        signal.alarm(_SECONDS)
        try:
            try:
                self._live(resource_type, row, properties, other)
            except FailedError:
                if other != properties:
                    raise
                self._live(resource_type, row, properties, None)  # there is one for each of what it is about
        finally:
            signal.alarm(0)

    def _live(self, resource_type: str, row: Row, properties: dict[str, Any], other: dict[str, Any] | None) -> None:
        """One whole life, beside another resource of the type if there may be one."""
        type_, provisioner = type_of(resource_type), types.row_type(resource_type, row)
        first = self._create(resource_type, provisioner, properties)
        second: Provisioned | None = None
        if other is not None:
            try:
                second = self._create(resource_type, provisioner, other)
            except Exception:  # some exist once per account
                second = None
        if second is not None and second.physical_id == first.physical_id:
            raise FailedError("create: two have one id")
        request = request_for(resource_type, properties)
        shown = provisioner.found(request, first)
        if not shown:
            raise FailedError("read: not found")
        if not _names(shown, first, type_):
            raise FailedError("read: another resource")
        self._tag(provisioner, request, first, type_)
        provisioner.delete(request, first)
        after = provisioner.found(request, first)
        if after and _names(after, first, type_) and not _is_going(after):
            raise FailedError("delete: it is still there")
        if second is not None and other is not None:
            its_request = request_for(resource_type, other)
            if not provisioner.found(its_request, second):
                raise FailedError("delete: took another one with it")
            provisioner.delete(its_request, second)

    def _create(self, resource_type: str, provisioner: Any, properties: dict[str, Any]) -> Provisioned:
        made = provisioner.create(request_for(resource_type, properties))
        if made.note and "creates nothing" in made.note:
            raise FailedError(f"create: {made.note.partition('The call failed: ')[2]}")
        return made

    def _tag(self, provisioner: Any, request: Request, current: Provisioned, type_: Type) -> None:
        if not provisioner.tagging or not type_.tag_property:
            return
        a_map = "array" not in type_.kinds(type_.tag_property)
        tags: Any = {"a": "b"} if a_map else [{"Key": "a", "Value": "b"}]
        try:
            tagged = dataclasses.replace(request, properties={**request.properties, type_.tag_property: tags})
            if provisioner.update(tagged, current, request.properties).physical_id != current.physical_id:
                raise FailedError("tags are not changed in place")
            provisioner.update(request, current, tagged.properties)
        except Exception as error:
            raise FailedError(f"tag: {_short(error)}") from error


_NO_ROW: Row = {"service": "ec2", "create_call": "CreateVpc", "renamed": {}, "name_property": ""}


def hand_written() -> set[str]:
    """The types that have a provisioner of their own."""
    return set(registry.really_created()) - types.rows("derived_types.toml").keys()


def request_for(resource_type: str, properties: dict[str, Any]) -> Request:
    """A request as a stack of the sweep makes it."""
    return Request(
        account=ACCOUNT,
        region=REGION,
        stack_name="sweep",
        stack_id=f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/sweep/{uuid.uuid4()}",
        logical_id="X",
        resource_type=resource_type,
        properties=properties,
    )


def _renamed_copy(properties: dict[str, Any], type_: Type) -> dict[str, Any]:
    """The same under another name, if the sample had to name it."""
    names = {"Name", f"{type_.kind}Name", *type_.identifier}
    return {
        key: f"{value}2" if key in names and value in ("example", "Example", "example-1") else value
        for key, value in properties.items()
    }


def _names(shown: Any, made: Provisioned, type_: Type) -> bool:
    """Whether a description is of this very resource."""
    own = {key: value for key, value in made.attributes.items() if key in type_.identifier}
    wanted = {part.lower() for part in [*made.physical_id.split("|"), *map(str, own.values())]}
    wanted |= {re.split(r"[/:]", part)[-1] for part in wanted}
    return any(text in wanted or re.split(r"[/:]", text)[-1] in wanted for text in _texts(shown))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value).lower()


_GOING = re.compile(r"deleted|deleting|terminated|shutting-down|inactive|pending.?deletion", re.IGNORECASE)


def _is_going(shown: Any) -> bool:
    return any(_GOING.fullmatch(text) for text in _texts(shown))


def _too_late(*_: Any) -> None:
    raise TimeoutError(f"more than {_SECONDS} s")


def _short(error: BaseException) -> str:
    return re.sub(
        r"\s+", " ", f"{type(error).__name__}: {api.words(error) if isinstance(error, Exception) else error}"
    )[:180]
