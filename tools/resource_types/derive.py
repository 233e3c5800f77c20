"""From a registry schema and botocore's service models to the API calls that provision a type.

Nothing is claimed unseen: what cannot be derived gives no row, and each row has to pass the sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.resource_types.existing import Existing
from tools.resource_types.models import (
    CREATING,
    DELETING,
    HINTS,
    READING,
    TOKEN,
    Row,
    Type,
    members_of,
    services_of,
    split,
)
from tools.resource_types.names import distance, singular


class Derivation(Existing):
    """One type with one service."""

    def rows(self) -> Iterator[Row]:
        """The rows to try, the likeliest first."""
        calls = self._operations(["create"], CREATING)
        hinted, own = self.hints.get("create_call"), f"Create{self.type.kind}"
        if not hinted and own in self.model.operation_names and own not in self.operations:
            return  # what else the creation calls makes only a part of the resource
        candidates = [(self._create(one), one) for one in ([hinted] if hinted else calls)]
        ranked = sorted(
            ((found, one) for found, one in candidates if found is not None), key=lambda pair: -pair[0]["fit"]
        )
        for found, create in ranked[:2]:
            self.nouns = list(dict.fromkeys([self.type.kind, split(create)[1]]))
            found = self._create(create)
            if found is not None:
                yield from self._complete(create, found)

    def _create(self, operation: str) -> Row | None:
        """How the properties become the arguments of a creating call; None if a required argument stays open."""
        verb, noun = split(operation)
        nouns = list(dict.fromkeys([*self.nouns, noun]))
        shape = self.model.operation_model(operation).input_shape
        members = members_of(shape)
        renamed, taken = self._map_properties(members, nouns)
        hinted: dict[str, str] = self.hints.get("renamed", {})
        for name, argument in hinted.items():
            renamed[name] = taken[name] = argument
        rest = [name for name in self.type.properties if name not in taken]
        for wrapper, inner in members.items():  # e.g. an `Attributes` map, or all in one `DistributionConfig`
            if wrapper in taken.values() or not rest:
                continue
            if inner.type_name == "map" and singular(wrapper) in ("attribute",):
                renamed |= {name: f"{wrapper}.{name}" for name in rest if name != self.type.tag_property}
                taken |= {name: wrapper for name in rest if name != self.type.tag_property}
            elif inner.type_name == "structure" and (
                wrapper in shape.required_members or wrapper.lower().startswith(self.type.kind.lower())
            ):
                inside, in_taken = self._map_properties(dict(inner.members), nouns, rest)
                for name in in_taken:
                    renamed[name] = f"{wrapper}.{inside.get(name, name)}"
                taken |= {name: wrapper for name in in_taken}  # noqa: C420
        name_property = self.hints.get("name_property", self._name_property(operation, taken))
        arguments: dict[str, Any] = dict(self.hints.get("arguments", {}))
        for member in shape.required_members if shape is not None else ():
            inner = members[member]
            given = {argument.split(".")[0] for argument in (*taken.values(), *arguments)}
            if member in given or inner.metadata.get("idempotencyToken"):
                continue
            if member.lower() in ("accountid", "awsaccountid"):
                arguments[member] = "{account}"
            elif (
                TOKEN.search(member)
                or distance(member, "Name", nouns) is not None
                or distance(member, f"{noun}Id", nouns) == 0
            ):
                arguments[member] = "{name}"
            else:
                return None
        fit = len(taken) / max(1, len(self.type.properties)) + 2.0 * (singular(noun) == singular(self.type.kind))
        fit += (
            0.5 * (operation in self.type.calls("create"))
            + 0.5 * (verb == "Create")
            - 0.1 * (verb in ("Start", "Set", "Enable"))
        )
        return {
            "fit": fit,
            "renamed": renamed,
            "taken": taken,
            "arguments": arguments,
            "name_property": name_property,
            "members": members,
        }

    def _name_property(self, operation: str, taken: dict[str, str]) -> str:
        """The property that CloudFormation fills in when the template does not name the resource."""
        shape = self.model.operation_model(operation).input_shape
        needed = set(shape.required_members) if shape is not None else set[str]()
        for name in self.type.properties:
            if "string" not in self.type.kinds(name) or name in self.type.required:
                continue
            near = distance(name, "Name", self.nouns) is not None or name in (
                f"{self.type.kind}Identifier", f"{self.type.kind}Id", *self.type.identifier)  # fmt: skip
            needs = taken.get(name, "").split(".")[0] in needed or name in self.type.identifier
            if near and needs and name in taken:
                return name
        return ""

    def _complete(self, create: str, found: Row) -> Iterator[Row]:
        output = self.model.operation_model(create).output_shape
        known = self._known(found, output)
        known = {name: text for name, text in known.items() if text}
        if any(name not in known for name in self.type.identifier):
            return
        physical_id = "|".join(known[name] for name in self.type.identifier) or "{name}"
        row: Row = {
            "service": self.service,
            "create_call": create,
            "name_property": found["name_property"],
            "physical_id": physical_id,
            "arguments": found["arguments"],
            "renamed": found["renamed"],
        }
        if found["name_property"]:
            row["name_limit"] = int(self.type.schema(found["name_property"]).get("maxLength") or 64)
        facts = self._facts(known)
        deleting = [self.hints[key] for key in ("delete_call",) if key in self.hints]
        reading = [self.hints[key] for key in ("read_call",) if key in self.hints]
        deletions = [
            (self._identify(one, facts), one)
            for one in deleting or self._operations(["delete"], DELETING)
            if deleting or self._belongs(one)
        ]
        reads = [
            (self._identify(one, facts, optional=True), one)
            for one in reading or self._operations(["read", "list"], READING)
            if reading or self._belongs(one)
        ]
        row["attributes"] = {
            path: "{id}" if known[path] == physical_id else known[path]
            for path in self.type.read_only
            if path in known and path not in self.type.properties
        }
        deletions = [(identity, one) for identity, one in deletions if identity is not None]
        deletions.sort(key=lambda pair: self._rank(pair[1]))
        reads = [(identity, one) for identity, one in reads if identity]
        reads.sort(key=lambda pair: (split(pair[1])[0] == "List", self._rank(pair[1]), split(pair[1])[0] != "Describe"))
        if not deletions or not reads:
            return
        shown = self._from_read(reads[0][1], row)["read_attributes"]
        facts |= {path: f"{{attributes[{path}]}}" for path in shown if path not in facts}
        row |= self._tagging(facts, found)
        identity, delete = deletions[0]
        row |= {"delete_call": delete, "identified_by": identity}
        row |= self._update(facts, create, row)
        row |= self._settings(found, facts, row)
        for read_identity, read in reads[:3]:
            assert read_identity is not None
            whole: Row = row | {"read_call": read} | self._from_read(read, row)
            whole["identified_by"] = {**read_identity, **self._everything(read), **row["identified_by"]}
            for key, value in self.hints.items():
                whole[key] = whole.get(key, {}) | value if isinstance(value, dict) else value
            yield whole
            if "tagging" in whole:
                yield {key: value for key, value in whole.items() if key != "tagging"}

    def _everything(self, read: str) -> dict[str, Any]:
        """The argument by which a reading call is asked for all attributes."""
        shape = self.model.operation_model(read).input_shape
        for name, inner in shape.members.items() if shape is not None else ():
            choices = getattr(inner.member, "enum", None) if inner.type_name == "list" else None
            if choices and {"All", "ALL"} & set(choices):
                return {name: sorted({"All", "ALL"} & set(choices))}
        return {}

    def _known(self, found: Row, output: Any) -> dict[str, str]:
        """Where the values of all identifiers, attributes and properties come from when the resource is created."""
        known: dict[str, str] = {}
        for path in {*self.type.identifier, *self.type.read_only}:
            place = self._find(output, path) if "." not in path else None
            if place is not None or (path == "Id" and (place := self._find(output, "Arn"))):
                known[path] = f"{{answer{place}}}"
            elif path == found["name_property"]:
                known[path] = "{name}"
            elif path in self.type.properties and path in self.type.required:
                known[path] = f"{{properties[{path}]}}"
            elif "{name}" in found["arguments"].values() and distance(path, "Name", self.nouns) is not None:
                known[path] = "{name}"
        if found["name_property"] and found["name_property"] in self.type.identifier and len(self.type.identifier) == 1:
            known[found["name_property"]] = "{name}"
        return known

    def _facts(self, known: dict[str, str]) -> dict[str, str]:
        """What is known of an existing resource: a name -> the text that gives it."""
        facts = {name: f"{{properties[{name}]}}" for name in self.type.properties if name != self.type.tag_property}
        facts |= {path: f"{{attributes[{path}]}}" for path in self.type.read_only if path in known and "." not in path}
        if len(self.type.identifier) == 1:
            facts[self.type.identifier[0]] = "{id}"
        return facts


def derive(document: dict[str, Any], ref: list[str] | None) -> Iterator[Row]:
    """All rows that may provision the type, the likeliest first."""
    hints = HINTS.get(document["typeName"], {})
    if {"service", "create_call", "physical_id", "delete_call", "read_call"} <= hints.keys():
        yield {"arguments": {}, "renamed": {}, "name_property": "", "attributes": {}, **hints}
        return
    type_ = Type(document, ref)
    for service in [hints["service"]] if "service" in hints else services_of(document):
        yield from Derivation(type_, service, hints).rows()
