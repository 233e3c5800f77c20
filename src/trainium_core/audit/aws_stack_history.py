"""What stacks made, from CloudFormation. Their events hold more than their resources: also what they replaced."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from trainium_core.audit.listings.listing import tags_of
from trainium_core.audit.stack_record import StackRecord
from trainium_core.stacks.aws_template import AwsStackTemplates, cluster_of
from trainium_core.stacks.cluster_resources import resources_of
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG

_THREADS = 4


class AwsStackHistory(AwsStackTemplates):
    def stack_records(self, names: Sequence[str]) -> Sequence[StackRecord]:
        stacks = [*self._existing(), *self._deleted(names)]
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(partial(self._record, names), stacks))

    def _existing(self) -> list[Mapping[str, Any]]:
        with read_errors("cloudformation:DescribeStacks"):
            pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
            return [stack for page in pages for stack in page["Stacks"]]

    def _deleted(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Those of the names only: the tags of each have to be asked for."""
        client = self.client("cloudformation")
        with read_errors("cloudformation:ListStacks"):
            pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
            ids = [one["StackId"] for page in pages for one in page["StackSummaries"] if one["StackName"] in names]
        with read_errors("cloudformation:DescribeStacks"):
            yield from (client.describe_stacks(StackName=stack_id)["Stacks"][0] for stack_id in ids)

    def _record(self, names: Sequence[str], stack: Mapping[str, Any]) -> StackRecord:
        cluster, others = tags_of(stack).get(CLUSTER_TAG), frozenset[str]()
        if cluster is None and stack["StackName"] in names:
            # Without an answer it counts as the cluster's: so nothing that is left is taken for another's.
            with suppress(UnavailableError):
                template = self.template_resources(stack["StackId"], stack["StackStatus"])
                cluster = cluster_of({}, template)
                others = frozenset(template) - resources_of(template, cluster) if cluster else others
        concerned = cluster is not None or stack["StackName"] in names
        return StackRecord(
            name=stack["StackName"],
            stack_id=stack["StackId"],
            status=stack["StackStatus"],
            cluster=cluster,
            created=stack["CreationTime"],
            # A deletion that failed, or goes on, has a time too.
            deleted=stack["DeletionTime"] if stack["StackStatus"] == "DELETE_COMPLETE" else None,
            made=self._made(stack["StackId"], others) if concerned else {},
            shared=bool(others),
        )

    def _made(self, stack_id: str, others: Collection[str]) -> Mapping[tuple[str, str], str]:
        """Without the resources that are others', by their logical ids."""
        with read_errors("cloudformation:DescribeStackEvents"):
            pages = self.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack_id)
            events = [event for page in pages for event in page["StackEvents"]]
        made = dict[tuple[str, str], str]()
        for event in events:  # the newest comes first, and is the one that counts
            physical_id = event.get("PhysicalResourceId")
            if physical_id and physical_id != stack_id and event.get("LogicalResourceId") not in others:
                made.setdefault((event["ResourceType"], physical_id), event.get("ResourceStatus", ""))
        return made
