"""The account of an audit: every listing of this folder, the index of tags, and the history of stacks."""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence

from trainium_core.audit.aws_stack_history import AwsStackHistory
from trainium_core.audit.listings.ec2_compute import COMPUTE
from trainium_core.audit.listings.ec2_network import NETWORK
from trainium_core.audit.listings.ec2_storage import STORAGE
from trainium_core.audit.listings.events_and_alarms import EVENTS_AND_ALARMS
from trainium_core.audit.listings.file_systems import FILE_SYSTEMS
from trainium_core.audit.listings.functions_and_logs import FUNCTIONS_AND_LOGS
from trainium_core.audit.listings.identity_and_keys import IDENTITY_AND_KEYS
from trainium_core.audit.listings.listing import AwsResourceLister, Listing, Location
from trainium_core.audit.listings.models import MODELS
from trainium_core.audit.listings.s3 import BUCKETS
from trainium_core.audit.resource import ResourceLister
from trainium_core.engines.registry import ENGINES
from trainium_core.identity.aws_caller import AwsIdentities
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.naming import CLUSTER_TAG


def _of_engines() -> Iterator[Listing]:
    for engine in ENGINES.values():
        if engine.audited is not None:
            yield from pkgutil.resolve_name(engine.audited)


LISTINGS: tuple[Listing, ...] = (
    *COMPUTE,
    *STORAGE,
    *FILE_SYSTEMS,
    *BUCKETS,
    *NETWORK,
    *_of_engines(),
    *MODELS,
    *FUNCTIONS_AND_LOGS,
    *EVENTS_AND_ALARMS,
    *IDENTITY_AND_KEYS,
)
"""Every kind that is looked for, in the order in which it is shown: what costs most comes first."""


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
