"""Looks for what a cluster left outside its stacks, and deletes it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainium_core.engines.registry import SERVICE_LOGS
from trainium_core.teardown.account import Leftover, LeftoverKind
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values


class AwsLeftovers(AwsService):
    """Implements trainium_core.teardown.account.Leftovers."""

    def candidates(self, kind: LeftoverKind, *, cluster: str, stack_names: Sequence[str]) -> Sequence[Leftover]:
        match kind:
            case "log group":
                return list(self._log_groups(stack_names))
            case "SSM parameter":
                return list(self._parameters(cluster))
            case "snapshot":
                return list(self._snapshots(cluster))
            case "network interface":
                return list(self._interfaces(cluster))

    def delete_leftover(self, leftover: Leftover) -> None:
        named = leftover.resource_id
        match leftover.kind:
            case "log group":
                with write_errors("logs:DeleteLogGroup", absent=("ResourceNotFoundException",)):
                    self.client("logs").delete_log_group(logGroupName=named)
            case "SSM parameter":
                with write_errors("ssm:DeleteParameter", absent=("ParameterNotFound",)):
                    self.client("ssm").delete_parameter(Name=named)
            case "snapshot":
                with write_errors("ec2:DeleteSnapshot", absent=("InvalidSnapshot.NotFound",)):
                    self.client("ec2").delete_snapshot(SnapshotId=named)
            case "network interface":
                with write_errors("ec2:DeleteNetworkInterface", absent=("InvalidNetworkInterfaceID.NotFound",)):
                    self.client("ec2").delete_network_interface(NetworkInterfaceId=named)

    def _log_groups(self, stack_names: Sequence[str]) -> Iterator[Leftover]:
        client = self.client("logs")
        of_stacks = [prefix for name in stack_names for prefix in (f"/aws/lambda/{name}-", f"{name}-")]
        for prefix in (*of_stacks, *(logs.prefix for logs in SERVICE_LOGS)):
            with read_errors("logs:DescribeLogGroups"):
                pages = client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
                found = [entry for page in pages for entry in page["logGroups"]]
            for entry in found:
                arn = entry.get("logGroupArn") or entry["arn"].removesuffix(":*")
                with read_errors("logs:ListTagsForResource", absent=("ResourceNotFoundException",)):
                    tags = client.list_tags_for_resource(resourceArn=arn).get("tags", {})
                    yield Leftover(kind="log group", resource_id=entry["logGroupName"], tags=tags)

    def _parameters(self, cluster: str) -> Iterator[Leftover]:
        client = self.client("ssm")
        with read_errors("ssm:DescribeParameters"):
            filters = [{"Key": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
            pages = client.get_paginator("describe_parameters").paginate(ParameterFilters=filters)
            names = [entry["Name"] for page in pages for entry in page["Parameters"]]
        for name in names:
            with read_errors("ssm:ListTagsForResource", absent=("InvalidResourceId",)):
                answer = client.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)
                yield Leftover(kind="SSM parameter", resource_id=name, tags=tag_values(answer["TagList"]))

    def _snapshots(self, cluster: str) -> Iterator[Leftover]:
        with read_errors("ec2:DescribeSnapshots"):
            pages = self.client("ec2").get_paginator("describe_snapshots")
            for page in pages.paginate(OwnerIds=["self"], Filters=_of(cluster)):
                for entry in page["Snapshots"]:
                    tags = tag_values(entry.get("Tags"))
                    yield Leftover(kind="snapshot", resource_id=entry["SnapshotId"], tags=tags)

    def _interfaces(self, cluster: str) -> Iterator[Leftover]:
        with read_errors("ec2:DescribeNetworkInterfaces"):
            pages = self.client("ec2").get_paginator("describe_network_interfaces")
            free = {"Name": "status", "Values": ["available"]}
            for page in pages.paginate(Filters=[*_of(cluster), free]):
                for entry in page["NetworkInterfaces"]:
                    tags = tag_values(entry.get("TagSet"))
                    named = entry["NetworkInterfaceId"]
                    yield Leftover(kind="network interface", resource_id=named, tags=tags)


def _of(cluster: str) -> list[Mapping[str, Any]]:
    return [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
