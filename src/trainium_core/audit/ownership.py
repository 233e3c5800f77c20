"""Whether a resource belongs to a cluster: by its tag, its stack, its name, or its parent."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainium_core.audit.resource import Found, Resource, arn_key, arn_name
from trainium_core.audit.stack_record import AuditedStacks
from trainium_runtime.naming import CLUSTER_TAG

STACK_ID_TAG = "aws:cloudformation:stack-id"
"""A tag that CloudFormation adds to resources."""

ListedResource = tuple[str, str, Resource]
"""Kind, CloudFormation type and resource."""


@dataclass(frozen=True, kw_only=True)
class Ownership:
    """What shows that a resource belongs to a cluster.

    Attributes:
        cluster: The name of the cluster.
        tagged: The cluster tag of each resource that the Resource Groups Tagging API returns, by arn_key.
        stacks: The stacks of the cluster, and the names and IDs of others.
        stack_names: Names of the cluster's stacks. They count even if CloudFormation no longer lists such a stack.
    """

    cluster: str
    tagged: Mapping[str, str]
    stacks: AuditedStacks
    stack_names: tuple[str, ...]

    def found_by(self, resource_type: str, resource: Resource) -> tuple[str, ...]:
        """Every way in which the resource belongs to the cluster; empty if it belongs to another, or to none."""
        owner = resource.cluster or self.tagged.get(arn_key(resource.arn))
        if owner not in (None, self.cluster) or self._is_in_other_stack(resource):
            return ()
        maker = self.stacks.creating_stack(resource_type, resource.ids)
        named = next((prefix for name in sorted(resource.ids) if (prefix := self.name_prefix(name))), "")
        ways = (
            f"tag {CLUSTER_TAG}" if owner == self.cluster else "",
            f"created by stack {maker.name}" if maker else "",
            f"name {named}" if named else "",
        )
        return tuple(way for way in ways if way)

    def name_prefix(self, name: str) -> str:
        """`STACK-...` if a part of the name begins with the name of a stack of the cluster and a hyphen; else empty.

        Parts are separated by `/`. Case is ignored. If several stacks match, of this cluster or not, the longest
        name counts.
        """
        # A resource named after a shared stack may not belong to the cluster.
        shared = {stack.name for stack in self.stacks.own if stack.shared}
        own = {stack.name for stack in self.stacks.own} | (set(self.stack_names) - self.stacks.other_names)
        own -= shared
        for stack in sorted(own | self.stacks.other_names, key=len, reverse=True):
            if re.search(rf"(?:^|/){re.escape(stack)}-", name, re.IGNORECASE):
                return f"{stack}-..." if stack in own else ""
        return ""

    def _is_in_other_stack(self, resource: Resource) -> bool:
        """Whether CloudFormation's tag names another stack; False for a resource with a cluster tag.

        A stack that CloudFormation no longer lists is identified by its name.
        """
        stack_id = (resource.tags or {}).get(STACK_ID_TAG)
        own = {stack.stack_id for stack in self.stacks.own}
        if stack_id is None or resource.cluster is not None or stack_id in own:
            return False
        return stack_id in self.stacks.other_ids or arn_name(stack_id).partition("/")[0] not in self.stack_names


def owned_resources(seen: Iterable[ListedResource], evidence: Ownership) -> list[tuple[ListedResource, Found]]:
    """The resources of the cluster and, recursively, their parts."""
    rest, owned, ids = list(seen), list[tuple[ListedResource, Found]](), set(evidence.stacks.made_names)
    while True:
        candidates, rest, new = rest, list[ListedResource](), list[tuple[ListedResource, Found]]()
        for kind, resource_type, resource in candidates:
            found_by = evidence.found_by(resource_type, resource) or _owning_parents(resource, ids, evidence)
            if found_by:
                new.append(((kind, resource_type, resource), Found(kind=kind, resource=resource, found_by=found_by)))
            else:
                rest.append((kind, resource_type, resource))
        if not new:
            return owned
        owned += new
        ids.update(name for (_, _, resource), _ in new for name in resource.ids)


def _owning_parents(resource: Resource, ids: set[str], evidence: Ownership) -> tuple[str, ...]:
    owner = resource.cluster or evidence.tagged.get(arn_key(resource.arn))
    parents = sorted(resource.parents & ids)
    return (f"part of {parents[0]}",) if parents and owner in (None, evidence.cluster) else ()
