"""How a resource that exists is found, changed and tagged through its service."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tools.resource_types.models import (
    CHANGING,
    PAIRS,
    Row,
    Type,
    fits,
    implemented,
    members_of,
    model,
    split,
)
from tools.resource_types.names import distance, nearest, singular


class Existing:
    """One type with one service."""

    def __init__(self, type_: Type, service: str, hints: Row) -> None:
        self.type, self.service, self.model, self.hints = type_, service, model(service), hints
        self.operations = sorted(implemented(service))
        self.nouns = [type_.kind]

    def _operations(self, handlers: Iterable[str], verbs: tuple[str, ...]) -> list[str]:
        named = {call for handler in handlers for call in self.type.calls(handler)}
        by_noun = {
            operation
            for operation in self.operations
            if singular(split(operation)[1]) in {singular(noun) for noun in self.nouns}
        }
        wanted = named | by_noun
        return [one for one in self.operations if one in wanted and split(one)[0] in verbs]

    def _map_properties(
        self, members: dict[str, Any], nouns: list[str], names: list[str] | None = None
    ) -> tuple[dict[str, str], dict[str, str]]:
        """(property -> argument where the names differ, every property that an argument takes -> the argument)"""
        renamed: dict[str, str] = {}
        taken: dict[str, str] = {}
        wanted = self.type.properties if names is None else names
        for limit in range(4):
            for name in wanted:
                if name in taken:
                    continue
                free = [one for one in members if one not in taken.values()]
                kinds = self.type.kinds(name)
                match = nearest(name, [one for one in free if fits(kinds, members[one])], nouns, limit)
                if match is None and name == self.type.tag_property:
                    match = next((one for one in free if one.lower() in ("tags", "taglist", "tagset")), None)
                if match is not None:
                    taken[name] = match
                    if match.lower() != name.lower():
                        renamed[name] = match
        return renamed, taken

    def _find(self, shape: Any, wanted: str, depth: int = 3) -> str | None:
        """Where an answer holds a value, as "[Queue][QueueArn]"; nearest to the surface first."""
        level: list[tuple[str, Any]] = [("", shape)]
        for _ in range(depth + 1):
            below: list[tuple[str, Any]] = []
            best: tuple[int, str] | None = None
            for path, one in level:
                members = members_of(one)
                scalars = [name for name, inner in members.items() if inner.type_name not in ("structure", "map")]
                for name in scalars:
                    far = distance(wanted.rsplit(".", 1)[-1], name, self.nouns)
                    plural = members[name].type_name == "list"
                    if far is not None and far <= 2 and not (plural and far):
                        best = min(best or (9, ""), (far, f"{path}[{name}]"))
                for name, inner in members.items():
                    if inner.type_name == "structure":
                        below.append((f"{path}[{name}]", inner))
                    elif inner.type_name == "list" and inner.member.type_name in ("structure",):
                        below.append((f"{path}[{name}][0]", inner.member))
                    elif inner.type_name == "map" and "attribute" in name.lower():
                        below.append((f"{path}[{name}]", inner))
                    elif inner.type_name == "list" and singular(name) == singular(f"{self.nouns[-1]}Id"):
                        best = (
                            min(best or (9, ""), (2, f"{path}[{name}][0]")) if wanted.lower().endswith("id") else best
                        )
            if best is not None:
                return best[1]
            level = [(path, one) for path, one in below if one is not None and self._related(path)]
        return None

    def _related(self, path: str) -> bool:
        """Whether a part of an answer is about the resource itself, and not about its neighbours."""
        last = [step for step in re.findall(r"\[(\w+)\]", path) if not step.isdigit()][-1].lower()
        nouns = [singular(noun) for noun in self.nouns]
        return any(noun in singular(last) or singular(last) in noun for noun in nouns) or any(
            end in last for end in ("metadata", "detail", "summary", "description", "configuration", "reservations")
        )

    def _belongs(self, operation: str) -> bool:
        noun = singular(split(operation)[1])
        return any(singular(own) in noun or noun in singular(own) for own in self.nouns) or not noun

    def _rank(self, operation: str) -> tuple[int, int]:
        noun = singular(split(operation)[1])
        own = [singular(one) for one in reversed(self.nouns)]
        return (own.index(noun) if noun in own else len(own)), len(noun)

    def _identify(self, operation: str, facts: dict[str, str], optional: bool = False) -> dict[str, str] | None:
        """The arguments that say which resource is meant; None if a required one is not known."""
        shape = self.model.operation_model(operation).input_shape
        if shape is None:
            return {}
        nouns = [*self.nouns, split(operation)[1], "Resource"]
        identity: dict[str, str] = {}
        for member in shape.members:
            inner = shape.members[member]
            if inner.type_name not in ("string", "list", "integer", "long"):
                continue
            if inner.type_name == "list" and inner.member.type_name != "string":
                continue
            strong = {name: text for name, text in facts.items() if text == "{id}" or "attributes" in text}
            weak = {name: facts[name] for name in (*self.type.required, *self.type.whole_identifier) if name in facts}
            needed = member in shape.required_members
            match = nearest(member, strong, nouns, 3) or nearest(member, weak, nouns, 2 if needed else 1)
            if match is None and optional and member.lower().endswith("prefix"):
                match = nearest(member[: -len("prefix")], strong, nouns, 2)
            if match is None and needed and len(self.type.identifier) == 1 and self._names_it(member, nouns):
                match = self.type.identifier[0]
            if match is not None:
                identity[member] = facts[match]
            elif needed and member.lower() in ("accountid", "awsaccountid"):
                identity[member] = "{account}"
            elif needed and not inner.metadata.get("idempotencyToken"):
                return None
        if optional and not shape.required_members and len(identity) > 1:  # filters that exclude one another
            member = next((one for one in identity if identity[one] == "{id}"), next(iter(identity)))
            return {member: identity[member]}
        return identity

    def _names_it(self, member: str, nouns: list[str]) -> bool:
        return any(distance(member, name, nouns) is not None for name in ("Id", "Identifier", "Name"))

    def _tagging(self, facts: dict[str, str], found: Row) -> Row:
        """How the tags of an existing resource change, and how a new one gets them."""
        if not self.type.tag_property:
            return {}
        if self.service == "ec2":
            return {
                "tagging": {
                    "identified_by": {"Resources": ["{id}"]}, "tag": "CreateTags", "untag": "DeleteTags", "keys": "",
                },
                "ec2_tag_type": self._ec2_tag_type() if "TagSpecifications" in found["members"] else "",
            }  # fmt: skip
        named = [one.partition(":")[2] for one in self.type.document.get("tagging", {}).get("permissions", [])]
        custom = (
            "TagResource", "UntagResource", "AddTagsToResource", "RemoveTagsFromResource", "AddTags", "RemoveTags",
            f"Tag{self.type.kind}", f"Untag{self.type.kind}",
        )  # fmt: skip
        calls = [one for one in (*named, *custom) if one in self.operations]
        tag = next((one for one in calls if one.startswith(("Tag", "AddTag", "Create"))), None)
        untag = next((one for one in calls if one.startswith(("Untag", "RemoveTag", "DeleteTag"))), None)
        if tag is None or untag is None:
            return {}
        shape, reverse = (self.model.operation_model(one).input_shape for one in (tag, untag))
        tags = next((name for name in shape.members if singular(name) in ("tag", "taglist")), None)
        keys = next(
            (
                name
                for name in reverse.members
                if singular(name) in ("tagkey", "tagkeylist", "key", "tag", "tagstoremove")
            ),
            None,
        )
        arns = {name: text for name, text in facts.items() if name.lower().endswith("arn") and "properties" not in text}
        identity: dict[str, str] = {}
        for member in shape.required_members:
            if member == tags:
                continue
            if singular(member).endswith("arn") or member.lower() in ("resource", "resourcename", "resourceid"):
                match = nearest(member, arns, [*self.nouns, "Resource"], 2) or next(iter(arns), None)
                if match is None and not arns and "{id}" in facts.values():
                    match = self.type.identifier[0]
            else:
                match = nearest(
                    member, {k: v for k, v in facts.items() if "properties" not in v}, [*self.nouns, "Resource"], 2
                )
            if match is None:
                return {}
            identity[member] = facts[match]
        if tags is None or keys is None:
            return {}
        tagging: Row = {"identified_by": identity, "tag": tag, "untag": untag, "tags": tags, "keys": keys}
        return {"tagging": tagging}

    def _ec2_tag_type(self) -> str:
        kinds: list[str] = self.model.shape_for("ResourceType").enum
        nouns = {noun.lower() for noun in self.nouns}
        return next((kind for kind in kinds if kind.replace("-", "") in nouns), "")

    def _settings(self, found: Row, facts: dict[str, str], row: Row) -> Row:
        """The properties that the creating call does not take, and the calls that set them."""
        settings: list[Row] = []
        identity = dict(row["identified_by"])
        update = row.get("update_call")
        changing = members_of(self.model.operation_model(update).input_shape) if update else {}
        by_update = {name for name in self.type.properties if found["taken"].get(name) in changing}
        for name in self.type.properties:
            created = name in found["taken"]
            if name in (self.type.tag_property, found["name_property"]) or (
                created and (name in by_update or name in self.type.create_only)
            ):
                continue
            for operation in self._setting_operations():
                if operation in (update, row["create_call"]):
                    continue
                shape = self.model.operation_model(operation).input_shape
                own = self._identify(operation, facts, optional=True)
                members = {} if shape is None or own is None else dict(shape.members)
                nouns = [*self.nouns, split(operation)[1]]
                free = [one for one in members if own is not None and one not in own]
                match = nearest(name, [one for one in free if fits(self.type.kinds(name), members[one])], nouns, 3)
                if match is None or own is None or not own or shape is None:
                    continue
                if any(one not in own and one != match for one in shape.required_members):
                    continue
                verb, noun = split(operation)
                if f"Create{noun}" in self.model.operation_names and not self._belongs(operation):
                    continue  # it changes another resource
                setting: Row = {"property_name": name, "operation": operation, "arguments": {match: "{value}"}}
                if created:
                    setting["part_of_creation"] = True
                opposite = f"{PAIRS[verb]}{noun}" if verb in PAIRS else ""
                resets = [f"{other}{noun}" for other in ("Delete", "Reset", "Remove", "Disable")]
                if verb in PAIRS and opposite not in self.operations:
                    continue
                if opposite:
                    setting |= {"each": True, "reset": opposite, "arguments": {match: ["{value}"]}}
                elif any(one in self.operations for one in resets):
                    setting["reset"] = next(one for one in resets if one in self.operations)
                settings.append(setting)
                identity = {**own, **identity}
                break
        return {"settings": settings, "identified_by": identity} if settings else {}

    def _setting_operations(self) -> list[str]:
        named = {*self.type.calls("create"), *self.type.calls("update")}
        verbs = (*CHANGING, *PAIRS)
        return [one for one in self.operations if one in named and split(one)[0] in verbs and "Tag" not in one]

    def _update(self, facts: dict[str, str], create: str, row: Row) -> Row:
        """The call that changes an existing resource."""
        candidates: list[tuple[int, str, dict[str, str]]] = []
        for operation in self._operations(["update"], CHANGING):
            identity = self._identify(operation, facts)
            if not identity or not self._belongs(operation):
                continue
            members = members_of(self.model.operation_model(operation).input_shape)
            takes = len(self._map_properties(members, self.nouns)[1])
            candidates.append((-takes - 3 * (operation == create), operation, identity))
        if not candidates:
            return {}
        _, operation, identity = min(candidates, key=lambda one: one[:2])
        return {"update_call": operation, "identified_by": {**identity, **row["identified_by"]}}

    def _from_read(self, read: str, row: Row) -> Row:
        """Where the answer of the reading call holds the resource, and attributes that the creation leaves out."""
        shape = self.model.operation_model(read).output_shape
        places: list[tuple[int, int, list[Any]]] = []

        def walk(one: Any, path: list[Any]) -> None:
            members = members_of(one)
            taken = self._map_properties(members, self.nouns)[1]
            outputs = sum(nearest(path_, members, self.nouns, 2) is not None for path_ in self.type.read_only)
            places.append((-(len(taken) + outputs), len(path), path))
            for name, inner in members.items() if len(path) < 4 else ():
                if inner.type_name == "structure":
                    walk(inner, [*path, name])
                elif inner.type_name == "list" and inner.member.type_name == "structure":
                    walk(inner.member, [*path, name, 0])
                elif inner.type_name == "map" and "attribute" in name.lower():
                    walk(inner, [*path, name])

        walk(shape, [])
        _, _, place = min(places, key=lambda one: one[:2])
        inner = shape
        for step in place:
            inner = inner.member if step == 0 else inner.members[step]
        attributes: dict[str, str] = {}
        for path in self.type.read_only:
            found = self._find_path(inner, path)
            if found and path not in row["attributes"]:
                attributes[path] = f"{{read{found}}}"
        return {"read_path": place, "read_attributes": attributes}

    def _find_path(self, shape: Any, path: str) -> str | None:
        """Where a dotted attribute is in the resource's own description."""
        found = ""
        for step in path.split("."):
            members = members_of(shape)
            name = nearest(step, members, self.nouns, 2)
            if name is None:
                return self._find(shape, path, 1) if not found and "." not in path else None
            found, shape = f"{found}[{name}]", members[name]
        return found
