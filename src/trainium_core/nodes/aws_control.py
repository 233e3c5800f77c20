"""Auto Scaling groups of the nodes, and the notices in the membership, which every node reads."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from trainium_core.engines.registry import service_nodes
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.nodes.terminated_nodes import GROUP
from trainium_core.stacks.aws_change_sets import AwsChangeSets
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.node_store import NodeStore
from trainium_runtime.tags import tag_values
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.membership import Notice, without

_RUNNING = ("pending", "running")
_GROUP_TAG = "aws:autoscaling:groupName"
_NO_BUCKET = ("NoSuchBucket",)
_ATTEMPTS = 5  # The controller may change the membership concurrently.
EXISTING_STATES = ("pending", "running", "shutting-down", "stopping", "stopped")


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """An Auto Scaling group.

    Attributes:
        name: Name of the group.
        wanted: Desired number of instances; 0 for a deleted group.
        instances: Number of instances by EC2's state.
    """

    name: str
    wanted: int
    instances: Mapping[str, int] = field(default_factory=dict[str, int])


class AwsNodeControl(AwsFleets):
    """Reads, sizes and notifies the nodes of a stack.

    Reads raise UnavailableError; changes raise RequestRefusedError, and those of notices also UnavailableError, if the
    stack cannot be read.
    """

    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
        """Existing groups, and deleted groups that still have instances. Terminated instances do not count."""
        if not names:
            return []
        wanted = self._wanted(names)
        instances = self._instances(names)
        return [
            NodeGroup(name=name, wanted=wanted.get(name, 0), instances=instances[name])
            for name in names
            if name in wanted or instances[name]
        ]

    def empty_group(self, name: str, *, for_good: bool) -> None:
        """Set the desired and the minimum size to 0. Does nothing if the group does not exist.

        Args:
            name: Name of the group.
            for_good: Whether to set the maximum size to 0 too, so that only a stack update brings nodes back.
        """
        # A group that is missing or being deleted has no desired instances.
        with write_errors("autoscaling:UpdateAutoScalingGroup", absent=("not found", "pending delete")):
            client = self.client("autoscaling")
            maximum = {"MaxSize": 0} if for_good else {}
            client.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0, **maximum)

    def size_group(self, name: str, nodes: int) -> None:
        with write_errors("autoscaling:UpdateAutoScalingGroup"):
            self.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=name, DesiredCapacity=nodes)

    def terminate(self, instance_id: str) -> datetime:
        """Terminate an instance of a group, which then replaces it: to simulate the loss of a machine.

        Returns:
            When EC2 accepted the request, by AWS's clock, with which nodes synchronise theirs; by the local clock if
            the response has no date.

        Raises:
            RequestRefusedError: EC2 refused the request.
        """
        with write_errors("ec2:TerminateInstances"):
            answer = self.client("ec2").terminate_instances(InstanceIds=[instance_id])
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        return parsedate_to_datetime(date) if date else datetime.now(UTC)

    def notices(self, stack: str) -> Sequence[Notice]:
        """The notices to the nodes of a stack; empty without the stack or a membership."""
        bucket = self._bucket(stack)
        if bucket is not None:
            with read_errors(f"s3:GetObject on the bucket {bucket}", absent=_NO_BUCKET):
                return self._store(bucket).membership().membership.notices
        return ()

    def announce(self, stack: str, notice: Notice) -> bool:
        """Notify the nodes. Replaces an earlier notice of the same kind. Returns False without a membership."""
        return self._change(stack, lambda current: (*without(current, notice.kind), notice))

    def withdraw(self, stack: str, kind: str) -> None:
        """Remove the notice of this kind, if there is one."""
        self._change(stack, lambda current: without(current, kind))

    def _change(self, stack: str, change: Callable[[tuple[Notice, ...]], tuple[Notice, ...]]) -> bool:
        """Change the notices in the membership. Returns False without a membership."""
        bucket = self._bucket(stack)
        if bucket is None:
            return False
        with write_errors(f"s3:GetObject or s3:PutObject on the bucket {bucket}", absent=_NO_BUCKET):
            store = self._store(bucket)
            for _ in range(_ATTEMPTS):
                stored = store.membership()
                if stored.etag is None:
                    return False
                changed = replace(stored.membership, notices=change(stored.membership.notices))
                if changed == stored.membership or store.write_membership(changed, replacing=stored):
                    return True
            raise RequestRefusedError(
                f"the membership changed during each of {_ATTEMPTS} attempts to write it; run the command again"
            )
        return False

    def _bucket(self, stack: str) -> str | None:
        fleet = self.fleet_record(stack)
        return fleet.bucket if fleet else None

    def _store(self, bucket: str) -> NodeStore:
        return NodeStore(self.client("s3"), bucket, RECORDS_PREFIX)

    def _wanted(self, names: Sequence[str]) -> dict[str, int]:
        with read_errors("autoscaling:DescribeAutoScalingGroups"):
            pages = self.client("autoscaling").get_paginator("describe_auto_scaling_groups")
            return {
                group["AutoScalingGroupName"]: group["DesiredCapacity"]
                for page in pages.paginate(AutoScalingGroupNames=list(names))
                for group in page["AutoScalingGroups"]
            }

    def _instances(self, names: Sequence[str]) -> dict[str, Counter[str]]:
        """Instances by state, from EC2, because Auto Scaling stops listing an instance before it is terminated."""
        filters = [
            {"Name": f"tag:{_GROUP_TAG}", "Values": list(names)},
            {"Name": "instance-state-name", "Values": list(EXISTING_STATES)},
        ]
        found = {name: Counter[str]() for name in names}
        with read_errors("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
            for instance in pages.search("Reservations[].Instances[]"):
                tags = tag_values(instance.get("Tags"))
                found[tags[_GROUP_TAG]][instance["State"]["Name"]] += 1
        return found


class AwsNodeChanges(AwsChangeSets, AwsNodeControl):
    """The requests for the decision about a change set."""

    def running_nodes(self, stack: str) -> int:
        """The number of pending and running nodes of the stack; 0 without the stack. Raises UnavailableError."""
        # Not from its record, which this version may be unable to read: running nodes must not be overlooked.
        created = [entry for entry in self.stack_resources(stack) if entry.get("PhysicalResourceId")]

        def physical_ids(kind: str) -> Sequence[str]:
            return [entry["PhysicalResourceId"] for entry in created if entry["ResourceType"] == kind]

        groups = self.node_groups(physical_ids(GROUP))
        of_ec2 = sum(number for group in groups for state, number in group.instances.items() if state in _RUNNING)
        of_services = (
            nodes.running(self, physical_id)
            for nodes in service_nodes()
            for physical_id in physical_ids(nodes.resource_type)
        )
        return of_ec2 + sum(of_services)
