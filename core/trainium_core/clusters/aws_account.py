"""Asks AWS for the clusters of an account: CloudFormation for stacks, EC2 for nodes."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainium_core.clusters.account import ClusterNode, ClusterStack, ClusterStacks
from trainium_core.engines.registry import CONSTRUCT_IDS
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.naming import ASLEEP_PARAMETER, ENDS_OUTPUT
from trainium_core.nodes.aws_groups import EXISTING_STATES
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT
from trainium_core.stacks.aws_stacks import AwsStacks, as_deployed_stack
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.pilot_end import PilotEnd
from trainium_runtime.tags import tag_values

_THREADS = 4
_STACK_TAG = "aws:cloudformation:stack-name"
_PRODUCTS = {"spot": SPOT, CAPACITY_BLOCK: CAPACITY_BLOCK}


class AwsClustersAccount(AwsIdentities, AwsPrices, AwsStacks):
    """Implements trainium_core.clusters.account.ClustersAccount."""

    def cluster_stacks(self) -> ClusterStacks:
        """Those with the tag, and by their templates those with the name of a stack of this repository's app."""
        with read_errors("cloudformation:DescribeStacks"):
            pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
            there = [stack for page in pages for stack in page["Stacks"] if stack["StackStatus"] != "DELETE_COMPLETE"]
        with ThreadPoolExecutor(_THREADS) as threads:
            answers = list(threads.map(self._stack, there))
        return ClusterStacks(
            stacks=[answer for answer in answers if isinstance(answer, ClusterStack)],
            not_read=[answer for answer in answers if isinstance(answer, str)],
        )

    def cluster_nodes(self) -> Sequence[ClusterNode]:
        filters = [
            {"Name": "tag-key", "Values": [CLUSTER_TAG]},
            {"Name": "instance-state-name", "Values": list(EXISTING_STATES)},
        ]
        with read_errors("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
            return [_node(one) for page in pages for some in page["Reservations"] for one in some["Instances"]]
        return []

    def enabled_regions(self) -> Sequence[str]:
        with read_errors("ec2:DescribeRegions"):
            return [region["RegionName"] for region in self.client("ec2").describe_regions()["Regions"]]
        return []

    def _stack(self, found: Mapping[str, Any]) -> ClusterStack | str | None:
        """None: of no cluster. Text: why that is not known."""
        name, engine, stack = found["StackName"], _engine_of(found["StackName"]), as_deployed_stack(found)
        cluster = stack.tags.get(CLUSTER_TAG)
        if cluster is None and engine is not None:
            try:
                cluster = self.stack_contents(stack).cluster
            except UnavailableError as error:
                return f"whose stack {name} is: {error}"
        if cluster is None:
            return None
        asleep, ends = stack.parameters.get(ASLEEP_PARAMETER), stack.outputs.get(ENDS_OUTPUT)
        return ClusterStack(
            name=name,
            cluster=cluster,
            status=stack.status,
            engine=engine,
            asleep=None if asleep is None else asleep == "true",
            ends=PilotEnd.from_text(ends).instant(stack.created) if ends else None,
        )


def _engine_of(stack: str) -> str | None:
    """By the name that this repository's app gives its stacks."""
    named = (key for key, one in CONSTRUCT_IDS.items() if re.fullmatch(rf"([a-z0-9-]+-)?{re.escape(one)}", stack))
    return next(named, None)


def _node(found: Mapping[str, Any]) -> ClusterNode:
    tags = tag_values(found.get("Tags"))
    return ClusterNode(
        instance_id=found["InstanceId"],
        cluster=tags[CLUSTER_TAG],
        instance_type=found["InstanceType"],
        state=found["State"]["Name"],
        product=_PRODUCTS.get(found.get("InstanceLifecycle", ""), ON_DEMAND),
        zone_id=found.get("Placement", {}).get("AvailabilityZoneId", ""),
        stack=tags.get(_STACK_TAG),
    )
