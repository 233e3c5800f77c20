"""A stack and its current and former resources."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DescribedResource:
    """A current or former resource of a stack.

    Attributes:
        kind: CloudFormation's type of the resource.
        resource_id: Physical ID; empty until the resource is created.
        kept: Whether the deletion of the stack retains, or has retained, the resource.
        gone: Whether CloudFormation has deleted the resource.
        other: Whether the resource does not belong to the cluster.
        must_be_empty: Whether CloudFormation deletes it only if it is empty: a container that neither `trn destroy`
            nor a function of its stack empties.
    """

    kind: str
    resource_id: str
    kept: bool = False
    gone: bool = False
    other: bool = False
    must_be_empty: bool = False


@dataclass(frozen=True, kw_only=True)
class StackDescription:
    """A stack and its resources.

    Attributes:
        cluster: Value of the tag trn:cluster of the stack or its resources, if any.
        project: ID of the project that deployed the stack, if any.
        protected: Whether the stack has termination protection.
    """

    name: str
    stack_id: str
    status: str
    cluster: str | None
    project: str | None = None
    protected: bool = False
    resources: tuple[DescribedResource, ...] = ()

    def ids(self, kind: str) -> tuple[str, ...]:
        """Physical IDs of the cluster's resources of a type that still exist, and are deleted with the stack."""
        return tuple(
            resource.resource_id
            for resource in self.resources
            if resource.resource_id and resource.kind == kind and not (resource.kept or resource.gone or resource.other)
        )

    @property
    def others(self) -> tuple[DescribedResource, ...]:
        """The resources that do not belong to the cluster, and would be deleted with the stack."""
        return tuple(resource for resource in self.resources if resource.other and not (resource.kept or resource.gone))


@dataclass(frozen=True, kw_only=True)
class StackProgress:
    """The state of a deletion.

    Attributes:
        status: Status of the stack.
        left: Number of remaining resources.
        failures: Why the last deletion failed: a line for each resource. Empty unless the status is DELETE_FAILED.
    """

    status: str
    left: int = 0
    failures: tuple[str, ...] = ()
