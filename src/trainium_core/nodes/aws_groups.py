"""Reads and empties Auto Scaling groups, and terminates their nodes."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from trainium_core.engines.registry import service_nodes
from trainium_core.nodes.groups import NodeGroup
from trainium_core.nodes.terminated_nodes import GROUP
from trainium_core.stacks.aws_change_sets import AwsChangeSets
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.tags import tag_values

_RUNNING = ("pending", "running")
_GROUP_TAG = "aws:autoscaling:groupName"
EXISTING_STATES = ("pending", "running", "shutting-down", "stopping", "stopped")


class AwsNodeGroupControl(AwsService):
    """Implements the requests about groups of trainium_core.nodes.groups.NoticeAccount."""

    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
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


class AwsNodeChanges(AwsChangeSets, AwsNodeGroupControl):
    """The requests for the decision about a change set."""

    def running_nodes(self, stack: str) -> int:
        """The number of pending and running nodes of the stack; 0 without the stack. Raises UnavailableError."""
        groups = self.node_groups(self.physical_ids(stack, GROUP))
        of_ec2 = sum(number for group in groups for state, number in group.instances.items() if state in _RUNNING)
        of_services = (
            nodes.running(self, physical_id)
            for nodes in service_nodes()
            for physical_id in self.physical_ids(stack, nodes.resource_type)
        )
        return of_ec2 + sum(of_services)
