"""The AWS requests of an audit: every listing, the tag index, and CloudFormation's stack history."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from trainium_core.audit.listings.listing import AwsResourceLister, Location, entry_tags
from trainium_core.audit.listings.registry import LISTINGS
from trainium_core.audit.stack_record import DELETE_SKIPPED, AuditedStack
from trainium_core.aws.identity import AwsIdentities
from trainium_core.aws.prices import AwsPrices
from trainium_core.clusters.cluster import ClusterStacks
from trainium_core.naming import BOOTSTRAP_STACK_NAME
from trainium_core.stacks.aws_stacks import AwsStackReader
from trainium_core.stacks.cluster_resources import cluster_resources, tagged_cluster
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG

_BOOTSTRAP_OUTPUT = "BootstrapVersion"
"""Output of every stack of `cdk bootstrap`, whatever its name and qualifier (CDK Developer Guide, "Customize AWS CDK
bootstrapping")."""
_THREADS = 4
_DELETED_STACKS = 50
"""Maximum number of deleted stacks with other names that are read, last deleted first. Each takes two calls or more."""


class AwsStackHistory(AwsStackReader):
    """Reads existing and deleted stacks, with the resources that they created.

    Args:
        known: What was read of the region already.
    """

    def __init__(self, region: str, *, clients: Clients | None = None, known: ClusterStacks | None = None) -> None:
        super().__init__(region, clients=clients)
        self._known = known

    def stack_records(self, names: Sequence[str]) -> Sequence[AuditedStack]:
        """Every existing stack, every deleted one with one of the names, and the most recently deleted others.

        `made` is set for stacks with a cluster or with one of the names, and for those of `cdk bootstrap`. Deleted ones
        of these are found by the default name: the buckets that they retained are theirs.
        """
        names = (*names, BOOTSTRAP_STACK_NAME)
        existing = self._known.described if self._known else self.describe_stacks()
        stacks = [*existing, *self._deleted(names)]
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(partial(self._record, names), stacks))

    def _deleted(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Deleted stacks with one of the names, and the last deleted others, because apps choose their stack names."""
        deleted = self.deleted_stack_ids()
        named = [stack_id for name, stack_id in deleted if name in names]
        others = [stack_id for name, stack_id in deleted if name not in names]
        for stack_id in (*named, *others[:_DELETED_STACKS]):
            if stack := self.describe_stack(stack_id):
                yield stack

    def _record(self, names: Sequence[str], stack: Mapping[str, Any]) -> AuditedStack:
        cluster, others = entry_tags(stack).get(CLUSTER_TAG), frozenset[str]()
        if cluster is None and (stack["StackName"] in names or stack["StackStatus"] == "DELETE_COMPLETE"):
            # If the template cannot be read, a stack with one of the names counts as the cluster's.
            with suppress(UnavailableError):
                template = self.template_resources(stack["StackId"], stack["StackStatus"])
                cluster = tagged_cluster({}, template)
                others = frozenset(template) - cluster_resources(template, cluster) if cluster else others
        outputs = {output["OutputKey"] for output in stack.get("Outputs", ())}
        is_bootstrap = stack["StackName"] == BOOTSTRAP_STACK_NAME or _BOOTSTRAP_OUTPUT in outputs
        concerned = cluster is not None or is_bootstrap or stack["StackName"] in names
        return AuditedStack(
            name=stack["StackName"],
            stack_id=stack["StackId"],
            status=stack["StackStatus"],
            cluster=cluster,
            created=stack["CreationTime"],
            # A failed or running deletion also has a time.
            deleted=stack["DeletionTime"] if stack["StackStatus"] == "DELETE_COMPLETE" else None,
            made=self._made(stack["StackId"], others) if concerned else {},
            shared=bool(others),
            is_bootstrap=is_bootstrap,
        )

    def _made(self, stack_id: str, others: Collection[str]) -> Mapping[tuple[str, str], str]:
        """The last status of each resource, by type and physical ID.

        Resources with a logical ID in `others` are omitted, unless the stack retained them.
        """
        made = dict[tuple[str, str], str]()
        for event in self.newest_events(stack_id):
            physical_id = event.get("PhysicalResourceId")
            status = event.get("ResourceStatus", "")
            is_ours = event.get("LogicalResourceId") not in others or status == DELETE_SKIPPED
            if physical_id and physical_id != stack_id and is_ours:
                made.setdefault((event["ResourceType"], physical_id), status)
        return made


class AwsAuditedAccount(AwsIdentities, AwsPrices, AwsStackHistory):
    """Methods that send requests raise UnavailableError if a request fails or is denied."""

    def listers(self, account_id: str) -> Sequence[AwsResourceLister]:
        """One per kind of resource. Sends no request."""
        partition = str(self.client("sts").meta.partition)
        location = Location(partition=partition, region=self.region, account=account_id)
        return tuple(AwsResourceLister(listing, location, self._clients) for listing in LISTINGS)

    def tagged(self) -> Mapping[str, str]:
        """The tag index (Resource Groups Tagging API): the value of trn:cluster of every tagged resource, by ARN."""
        known = self._known.tag_index if self._known else None
        return {arn: tags[CLUSTER_TAG] for arn, tags in (self.tag_index() if known is None else known).items()}

    def calls(self) -> Mapping[str, int]:
        """The number of requests so far, by operation."""
        return self._clients.calls
