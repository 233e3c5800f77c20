"""The scope of a teardown: the stacks of one cluster, and which resources belong to it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trainium_core.engines.engine import Engine
from trainium_core.engines.parts import Workloads
from trainium_core.engines.registry import ENGINES
from trainium_core.naming import stack_names
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.stacks.description import DescribedResource, StackDescription
from trainium_core.teardown.leftovers import Leftover
from trainium_runtime.naming import CLUSTER_TAG, EMPTY_AT_DELETE_TAG

BUCKET = "AWS::S3::Bucket"
_FUNCTION = "AWS::Lambda::Function"
GROUP = "AWS::AutoScaling::AutoScalingGroup"
_LOG_GROUP = "AWS::Logs::LogGroup"
_STACK_TAG = "aws:cloudformation:stack-name"
_ONLY_CHANGE_SETS = "REVIEW_IN_PROGRESS"


def belongs_to_cluster(tags: Mapping[str, str], cluster: str, *, stacks: Collection[str] = ()) -> bool:
    """Whether a resource belongs to the cluster: it has the cluster's tag, and no other stack created it.

    Args:
        tags: The tags of the resource.
        cluster: Name of the cluster.
        stacks: Names of the cluster's stacks that differ from the usual names.
    """
    made_by = tags.get(_STACK_TAG)
    own = made_by is None or made_by in (*stack_names(cluster).values(), *stacks)
    return tags.get(CLUSTER_TAG) == cluster and own


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The stacks of a cluster.

    Attributes:
        cluster: Name of the cluster.
        existing: Existing stacks of the cluster.
        deleted: Deleted stacks of the cluster that CloudFormation still lists.
        foreign: Existing stacks that have a usual name of the cluster's stacks, but do not belong to the cluster.
        whole_stacks: Whether stacks that contain other resources are deleted too.
    """

    cluster: str
    existing: tuple[StackDescription, ...] = ()
    deleted: tuple[StackDescription, ...] = ()
    foreign: tuple[StackDescription, ...] = ()
    whole_stacks: bool = False

    @property
    def shared(self) -> tuple[StackDescription, ...]:
        """Stacks that stay because they contain other resources."""
        return () if self.whole_stacks else tuple(stack for stack in self.existing if stack.others)

    def other_project(self, project: str | None) -> StackDescription | None:
        """A stack of the cluster that another project than this one deployed."""
        return next((stack for stack in self.existing if stack.project not in (None, project)), None)

    @property
    def stacks_to_delete(self) -> tuple[StackDescription, ...]:
        """Existing stacks, except those that stay."""
        return tuple(stack for stack in self.existing if stack not in self.shared)

    @property
    def stack_names(self) -> tuple[str, ...]:
        """The usual names of the cluster's stacks, and the names of its existing stacks."""
        return tuple(dict.fromkeys([*stack_names(self.cluster).values(), *(stack.name for stack in self.existing)]))

    @property
    def contained_ids(self) -> frozenset[str]:
        """IDs of the resources of the existing stacks."""
        return frozenset(one.resource_id for stack in self.existing for one in stack.resources if not one.gone)

    def may_empty(self, tags: Mapping[str, str]) -> bool:
        """Whether a bucket, by its tags, belongs to the cluster and is not retained."""
        return self._belongs_to_cluster(tags) and tags.get(EMPTY_AT_DELETE_TAG) == "true"

    def _belongs_to_cluster(self, tags: Mapping[str, str]) -> bool:
        return belongs_to_cluster(tags, self.cluster, stacks=self.stack_names)

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self._ids_in(GROUP), *self.retained_groups)

    @property
    def retained_groups(self) -> tuple[str, ...]:
        """Auto Scaling groups that the stacks retain, or have retained. Their nodes keep running without the stack."""
        return tuple(resource.resource_id for resource in self.kept if resource.kind == GROUP)

    @property
    def engines_with_workloads(self) -> tuple[str, ...]:
        """Keys of the engines with workloads to stop.

        These are the engines of existing stacks, and of deleted stacks whose workloads run without the stack.
        """
        own = stack_names(self.cluster)

        def belongs(stack: StackDescription, engine: Engine, workloads: Workloads) -> bool:
            kinds = {resource.kind for resource in stack.resources if not resource.other}
            return stack.name in (engine.construct_id, own[engine.key]) or workloads.resource_type in kinds

        return tuple(
            key
            for key, engine in ENGINES.items()
            if (workloads := engine.workloads())
            and any(
                belongs(stack, engine, workloads)
                for stack in (*self.existing, *(() if workloads.end_with_stack else self.deleted))
            )
        )

    @property
    def has_outliving_workloads(self) -> bool:
        """Whether workloads may run, and be billed, without a stack."""
        found = (ENGINES[key].workloads() for key in self.engines_with_workloads)
        return any(workloads is not None and not workloads.end_with_stack for workloads in found)

    @property
    def workloads_need_stacks(self) -> bool:
        """Whether no stack may be deleted before its workloads are known to have ended."""
        found = (ENGINES[key].workloads() for key in self.engines_with_workloads)
        return any(workloads is not None and workloads.need_stack for workloads in found)

    @property
    def node_stack(self) -> str | None:
        return next((stack.name for stack in self.existing if stack.ids(GROUP)), None)

    @property
    def protected(self) -> tuple[str, ...]:
        """The names of the stacks to delete that have termination protection."""
        return tuple(stack.name for stack in self.stacks_to_delete if stack.protected)

    @property
    def to_empty_first(self) -> tuple[DescribedResource, ...]:
        """Containers of the stacks to delete that are not emptied, and block the deletion unless they are empty."""
        resources = (resource for stack in self.stacks_to_delete for resource in stack.resources)
        left = (each for each in resources if each.must_be_empty and not (each.kept or each.gone))
        return tuple(each for each in left if each.resource_id)

    @property
    def buckets_in_stacks(self) -> tuple[str, ...]:
        return tuple(name for stack in self.stacks_to_delete for name in stack.ids(BUCKET))

    @property
    def buckets(self) -> tuple[str, ...]:
        """Buckets of the stacks to delete, and buckets of deleted stacks that CloudFormation did not delete."""
        return tuple(name for stack in (*self.stacks_to_delete, *self.deleted) for name in stack.ids(BUCKET))

    @property
    def kept(self) -> tuple[DescribedResource, ...]:
        """Resources that the stacks retain, or have retained."""
        return tuple(
            resource for stack in (*self.existing, *self.deleted) for resource in stack.resources if resource.kept
        )

    def owns(self, leftover: Leftover) -> bool:
        """Whether a resource outside the stacks belongs to the cluster, by its tags.

        A log group without tags belongs to the cluster by its name.
        """
        if leftover.kind == "log group" and not leftover.tags:
            return leftover.resource_id in self._log_group_names()
        return self._belongs_to_cluster(leftover.tags)

    def _log_group_names(self) -> Iterator[str]:
        for stack in (*self.existing, *self.deleted):
            yield from stack.ids(_LOG_GROUP)
            # Lambda creates this group if the function's role allows it, even after the stack's log group was deleted.
            yield from (
                f"/aws/lambda/{resource.resource_id}" for resource in stack.resources if resource.kind == _FUNCTION
            )

    def _ids_in(self, kind: str) -> tuple[str, ...]:
        return tuple(resource_id for stack in self.existing for resource_id in stack.ids(kind))


def find_scope(
    account: AwsStackControl, cluster: str, *, located: Collection[str] = (), whole_stacks: bool = False
) -> Scope:
    """Find the stacks of a cluster.

    Args:
        account: The account.
        cluster: Name of the cluster.
        located: Names of stacks that contain resources of the cluster.
        whole_stacks: Whether stacks that contain other resources are deleted too.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    own = stack_names(cluster).values()
    names = tuple(dict.fromkeys([*own, *located]))
    existing = [stack for stack in account.existing_stacks(names) if stack.name in own or stack.cluster == cluster]
    return Scope(
        cluster=cluster,
        existing=tuple(stack for stack in existing if belongs(stack, cluster)),
        deleted=tuple(stack for stack in account.deleted_stacks(names) if stack.cluster == cluster),
        foreign=tuple(stack for stack in existing if not belongs(stack, cluster)),
        whole_stacks=whole_stacks,
    )


def belongs(stack: StackDescription, cluster: str) -> bool:
    """Whether a stack belongs to the cluster."""
    # A stack with only change sets has no tags, and no resources to lose.
    bare = stack.status == _ONLY_CHANGE_SETS and stack.cluster is None and not stack.resources
    return bare or stack.cluster == cluster
