"""The account of an audit: every listing, the index of tags, and the history of stacks."""

from collections.abc import Mapping, Sequence

from trainium_core.audit.aws_stack_history import AwsStackHistory
from trainium_core.audit.listings.listing import AwsResourceLister, Location
from trainium_core.audit.listings.registry import LISTINGS
from trainium_core.audit.resource import ResourceLister
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.naming import CLUSTER_TAG


class AwsAuditedAccount(AwsIdentities, AwsPrices, AwsStackHistory):
    """Implements trainium_core.audit.account.AuditedAccount."""

    def listers(self, account_id: str) -> Sequence[ResourceLister]:
        partition = str(self.client("sts").meta.partition)
        location = Location(partition=partition, region=self.region, account=account_id)
        return tuple(AwsResourceLister(listing, location, self._clients) for listing in LISTINGS)

    def tagged(self) -> Mapping[str, str]:
        with read_errors("tag:GetResources"):
            pages = self.client("resourcegroupstaggingapi").get_paginator("get_resources")
            found = [
                one
                for page in pages.paginate(TagFilters=[{"Key": CLUSTER_TAG}])
                for one in page["ResourceTagMappingList"]
            ]
            return {
                one["ResourceARN"]: tag["Value"] for one in found for tag in one["Tags"] if tag["Key"] == CLUSTER_TAG
            }

    def calls(self) -> Mapping[str, int]:
        return self._clients.calls
