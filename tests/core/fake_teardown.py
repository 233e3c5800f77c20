"""An account in memory whose cluster can be destroyed, one change at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.naming import STACK_NAME
from trainium_core.nodes.aws_control import NodeGroup
from trainium_core.stacks.description import DescribedResource, StackDescription, StackProgress
from trainium_core.teardown.leftovers import Leftover, LeftoverKind, StoredBytes, Workload
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.naming import CLUSTER_TAG, EMPTY_AT_DELETE_TAG
from trainium_wire.membership import Notice

OWN_CLUSTER, OTHER_CLUSTER = "trn-pilot", "trn-pilot-2"
GROUP, FUNCTION = f"{STACK_NAME}-Group", f"{STACK_NAME}-Controller"
RECORDS, CACHE = "records", "kept-cache"
CONSENT = {CLUSTER_TAG: OWN_CLUSTER, EMPTY_AT_DELETE_TAG: "true"}


class FakeClock:
    """A clock that advances only in pauses."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def pause(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class KilledError(BaseException):
    """Stands for SIGKILL: no code may catch it."""


def cluster_stack(**changes: object) -> StackDescription:
    stack = StackDescription(
        name=STACK_NAME,
        stack_id="stack/cluster",
        status="CREATE_COMPLETE",
        cluster=OWN_CLUSTER,
        resources=(
            DescribedResource(kind="AWS::AutoScaling::AutoScalingGroup", resource_id=GROUP),
            DescribedResource(kind="AWS::S3::Bucket", resource_id=RECORDS),
            DescribedResource(kind="AWS::S3::Bucket", resource_id=CACHE, kept=True),
            DescribedResource(kind="AWS::Lambda::Function", resource_id=FUNCTION),
        ),
    )
    return replace(stack, **changes)  # pyright: ignore[reportArgumentType]


def training_stack() -> StackDescription:
    environment = DescribedResource(kind="AWS::Batch::ServiceEnvironment", resource_id="arn:batch:environment")
    return StackDescription(
        name=SAGEMAKER.construct_id,
        stack_id="stack/sm",
        status="UPDATE_COMPLETE",
        cluster=OWN_CLUSTER,
        resources=(environment,),
    )


def leftover(kind: LeftoverKind, resource_id: str, **tags: str) -> Leftover:
    return Leftover(kind=kind, resource_id=resource_id, tags=tags or {CLUSTER_TAG: OWN_CLUSTER})


@dataclass
class FakeTeardown:
    """An account with a cluster stack, a training stack, and resources of others.

    Attributes:
        owned: Names of the existing stacks that contain resources, by resource ID.
        failing: The number of stack deletions that fail.
        fatal: The number of changes after which KilledError is raised; 0 for never.
        denied: Names of the reads that fail.
        refused: Names of the changes that fail.
        outliving: Clauses about nodes that no step ends.
        changes: The changes that were made.
    """

    stacks: list[StackDescription] = field(default_factory=lambda: [cluster_stack(), training_stack()])
    deleted: list[StackDescription] = field(default_factory=list[StackDescription])
    work: list[Workload] = field(
        default_factory=lambda: [
            Workload(kind="queued job", work_id="run"),
            Workload(kind="training job", work_id="trn-pilot--job"),
        ]
    )
    group: NodeGroup = field(default_factory=lambda: NodeGroup(name=GROUP, wanted=2, instances={"running": 2}))
    objects: dict[str, int] = field(default_factory=lambda: {RECORDS: 3, CACHE: 5, "their-bucket": 1})
    tags: dict[str, Mapping[str, str]] = field(
        default_factory=lambda: {
            RECORDS: CONSENT,
            CACHE: {CLUSTER_TAG: OWN_CLUSTER},
            "their-bucket": {CLUSTER_TAG: OTHER_CLUSTER},
        }
    )
    leftovers: list[Leftover] = field(
        default_factory=lambda: [
            leftover("log group", f"{STACK_NAME}-nodes"),
            Leftover(kind="log group", resource_id=f"/aws/lambda/{FUNCTION}", tags={}),
            leftover("SSM parameter", "/note"),
            leftover("snapshot", "snap-1"),
            leftover("network interface", "eni-1"),
        ]
    )
    foreign: list[Leftover] = field(
        default_factory=lambda: [
            Leftover(kind="log group", resource_id=f"/aws/lambda/{STACK_NAME}-dev-Controller", tags={}),
            leftover("log group", f"{STACK_NAME}-theirs", **{CLUSTER_TAG: OTHER_CLUSTER}),
            leftover("snapshot", "snap-2", **{CLUSTER_TAG: OWN_CLUSTER, "aws:cloudformation:stack-name": "Other"}),
        ]
    )
    owned: dict[str, str] = field(default_factory=dict[str, str])
    failing: int = 0
    fatal: int = 0
    denied: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    outliving: list[str] = field(default_factory=list[str])
    changes: list[str] = field(default_factory=list[str])
    stored_notices: list[Notice] = field(default_factory=list[Notice])
    has_membership: bool = True

    def _read(self, name: str) -> None:
        if name in self.denied:
            raise UnavailableError(f"not allowed: {name}")

    def _order(self, name: str) -> None:
        if name.partition(" ")[0] in self.refused:
            raise RequestRefusedError(f"refused: {name}")
        self.changes.append(name)

    def _killed_now(self) -> None:
        if len(self.changes) == self.fatal:
            raise KilledError

    def existing_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        self._read("existing_stacks")
        return [stack for stack in self.stacks if stack.name in names]

    def deleted_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        return [stack for stack in self.deleted if stack.name in names]

    def stack_progress(self, stack_id: str) -> StackProgress:
        self._read("stack_progress")
        (stack,) = [stack for stack in (*self.stacks, *self.deleted) if stack.stack_id == stack_id]
        if stack.status != "DELETE_IN_PROGRESS":
            failures = ("AWS::EC2::VPC vpc-1: it has dependencies",) if stack.status == "DELETE_FAILED" else ()
            return StackProgress(status=stack.status, left=len(stack.resources), failures=failures)
        if self.failing:
            self.failing -= 1
            self._become(stack, "DELETE_FAILED")
        else:
            self._become(stack, "DELETE_COMPLETE")
        return StackProgress(status="DELETE_IN_PROGRESS", left=len(stack.resources))

    def _become(self, stack: StackDescription, status: str) -> None:
        self.stacks.remove(stack)
        now = replace(stack, status=status)
        if status != "DELETE_COMPLETE":
            self.stacks.append(now)
            return
        gone = tuple(each if each.kept else replace(each, gone=True) for each in now.resources)
        self.deleted.append(replace(now, resources=gone))
        for bucket in stack.ids("AWS::S3::Bucket"):
            del self.objects[bucket], self.tags[bucket]

    def stack_containing(self, resource_id: str) -> str | None:
        return self.owned.get(resource_id)

    def delete_stack(self, stack_id: str) -> None:
        self._order(f"delete_stack {stack_id}")
        (stack,) = [stack for stack in self.stacks if stack.stack_id == stack_id]
        self.stacks[self.stacks.index(stack)] = replace(stack, status="DELETE_IN_PROGRESS")
        self._killed_now()

    def outliving_nodes(self, cluster: str) -> Sequence[str]:
        self._read("outliving_nodes")
        assert cluster == OWN_CLUSTER
        return self.outliving

    def running_workloads(self, *, engines: Sequence[str], cluster: str) -> Sequence[Workload]:
        self._read("running_work")
        assert list(engines) == [SAGEMAKER.key]
        assert cluster == OWN_CLUSTER
        now = list(self.work)
        self.work = [workload for workload in self.work if not workload.stopping]
        return now

    def stop(self, work: Workload) -> None:
        self._order(f"stop {work.work_id}")
        self.work[self.work.index(work)] = replace(work, stopping=True)
        self._killed_now()

    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
        self._read("node_groups")
        now = self.group
        if now.wanted == 0:
            self.group = replace(now, instances={"shutting-down": 2} if "running" in now.instances else {})
        return [now] if now.name in names else []

    def empty_group(self, name: str, *, for_good: bool) -> None:
        self._order(f"empty_group {name}{' for good' if for_good else ''}")
        self.group = replace(self.group, wanted=0)
        self._killed_now()

    def notices(self, stack: str) -> Sequence[Notice]:
        self._read("notices")
        assert stack == STACK_NAME
        return self.stored_notices

    def announce(self, stack: str, notice: Notice) -> bool:
        assert stack == STACK_NAME
        if self.has_membership:
            self._order("announce")
            self.stored_notices = [notice]
            self._killed_now()
        return self.has_membership

    def withdraw(self, stack: str, kind: str) -> None:
        assert stack == STACK_NAME
        self.stored_notices = [notice for notice in self.stored_notices if notice.kind != kind]

    def bucket_tags(self, name: str) -> Mapping[str, str]:
        self._read("bucket_tags")
        return self.tags.get(name, {})

    def is_empty(self, kind: str, resource_id: str) -> bool | None:
        self._read("is_empty")
        return None if kind == "AWS::Backup::BackupVault" else not self.objects.get(resource_id)

    def delete_some(self, bucket: str) -> int:
        if not self.objects[bucket]:
            return 0
        self._order(f"delete_some {bucket}")
        self.objects[bucket] -= 1
        self._killed_now()
        return 1

    def delete_bucket(self, name: str) -> None:
        self._order(f"delete_bucket {name}")
        del self.objects[name], self.tags[name]
        self._killed_now()

    def candidates(
        self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str], excluding: Collection[str]
    ) -> Sequence[Leftover]:
        self._read(kind)
        assert cluster == OWN_CLUSTER
        assert STACK_NAME in stack_names
        found = [leftover for leftover in (*self.leftovers, *self.foreign) if leftover.kind == kind]
        return [leftover for leftover in found if leftover.resource_id not in excluding]

    def delete_leftover(self, leftover: Leftover) -> None:
        self._order(f"delete_leftover {leftover.resource_id}")
        self.leftovers.remove(leftover)
        self._killed_now()

    def stored(self, kind: str, resource_id: str) -> StoredBytes | None:  # noqa: ARG002
        self._read("stored")
        return StoredBytes(count=self.objects[resource_id] * 1024**3) if resource_id in self.objects else None
