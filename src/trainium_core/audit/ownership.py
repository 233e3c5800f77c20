"""Whether a thing belongs to a cluster: by its tag, by the stack that made it, by its name, by what it is part of."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainium_core.audit.resource import Found, Resource, arn_key, arn_name
from trainium_core.audit.stack_record import Stacks
from trainium_runtime.naming import CLUSTER_TAG

STACK_ID_TAG = "aws:cloudformation:stack-id"
"""Tag that CloudFormation puts on what it makes."""

Seen = tuple[str, str, Resource]
"""Kind, CloudFormation type, and the resource."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """`tagged`: the cluster named by the tag of each thing that the index of tags knows, by arn_key.

    `stack_names`: names that count although no stack of that name is remembered any more.
    """

    cluster: str
    tagged: Mapping[str, str]
    stacks: Stacks
    stack_names: tuple[str, ...]

    def found_by(self, resource_type: str, resource: Resource) -> tuple[str, ...]:
        """Each way in which it is the cluster's; none where it is not, or is somebody else's by its tag or stack."""
        owner = resource.cluster or self.tagged.get(arn_key(resource.arn))
        if owner not in (None, self.cluster) or self._made_elsewhere(resource):
            return ()
        maker = self.stacks.maker_of(resource_type, resource.ids)
        named = next((prefix for name in sorted(resource.ids) if (prefix := self.name_prefix(name))), "")
        ways = (
            f"tag {CLUSTER_TAG}" if owner == self.cluster else "",
            f"made by stack {maker.name}" if maker else "",
            f"name {named}" if named else "",
        )
        return tuple(way for way in ways if way)

    def name_prefix(self, name: str) -> str:
        """The name of the cluster's stack that this name begins with, after a path; that of a longer one wins."""
        # Of a stack that has other things as well a name tells nothing.
        shared = {stack.name for stack in self.stacks.own if stack.shared}
        own = {stack.name for stack in self.stacks.own} | (set(self.stack_names) - self.stacks.other_names)
        own -= shared
        for stack in sorted(own | self.stacks.other_names, key=len, reverse=True):
            if re.search(rf"(?:^|/){re.escape(stack)}-", name, re.IGNORECASE):
                return f"{stack}-..." if stack in own else ""
        return ""

    def _made_elsewhere(self, resource: Resource) -> bool:
        """Whether CloudFormation's own tag names a stack of others; one that nobody remembers is judged by its name."""
        stack_id = (resource.tags or {}).get(STACK_ID_TAG)
        if stack_id is None or resource.cluster is not None or stack_id in {one.stack_id for one in self.stacks.own}:
            return False
        return stack_id in self.stacks.other_ids or arn_name(stack_id).partition("/")[0] not in self.stack_names


def belonging(seen: Iterable[Seen], evidence: Evidence) -> list[tuple[Seen, Found]]:
    """What of all that was seen is the cluster's, and what is part of that in turn."""
    rest, owned, ids = list(seen), list[tuple[Seen, Found]](), set(evidence.stacks.made_names)
    while True:
        ways = [(one, evidence.found_by(one[1], one[2]) or _part_of(one[2], ids, evidence)) for one in rest]
        new = [(one, Found(kind=one[0], resource=one[2], found_by=found_by)) for one, found_by in ways if found_by]
        if not new:
            return owned
        owned += new
        ids.update(name for (_, _, resource), _ in new for name in resource.ids)
        rest = [one for one, found_by in ways if not found_by]


def _part_of(resource: Resource, ids: set[str], evidence: Evidence) -> tuple[str, ...]:
    owner = resource.cluster or evidence.tagged.get(arn_key(resource.arn))
    parents = sorted(resource.parents & ids)
    return (f"part of {parents[0]}",) if parents and owner in (None, evidence.cluster) else ()
