"""The use of the quotas in the section `limits` of facts.toml, from EC2, and the AWS PCS clusters.

If the account hides resources that AWS services manage, EC2 does not list them. The parameter IncludeManagedResources,
which would list them, is newer than the oldest supported boto3.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG

GIB_PER_TIB = 1024
_GATEWAY_STATES = ("pending", "available", "deleting")
_LARGEST_PAGE = 1000
_MAX_PAGES = 20
"""Counting stops after this number of pages, which hold four times the default quota of network interfaces."""


@dataclass(frozen=True, kw_only=True)
class UsedAmount:
    """The amount of something that a quota limits.

    Attributes:
        amount: The counted amount.
        complete: Whether everything was counted.
    """

    amount: float
    complete: bool = True


class AwsResourceUse(AwsService):
    """The use of quotas in one region. Methods raise UnavailableError if a request fails or is denied.

    Methods whose names end in `_excluding` count the resources without the tag trn:cluster of the cluster.
    """

    def elastic_ips_excluding(self, cluster: str) -> UsedAmount:
        with read_errors("ec2:DescribeAddresses"):
            return UsedAmount(amount=len(_others(self.client("ec2").describe_addresses()["Addresses"], cluster)))

    def nat_gateways_excluding(self, cluster: str, *, zone_id: str | None) -> UsedAmount:
        """Gateways in a zone, with all regional ones, or in the whole region if zone_id is None."""
        states = [{"Name": "state", "Values": [*_GATEWAY_STATES]}]
        with read_errors("ec2:DescribeNatGateways"):
            found, complete = self._listed("describe_nat_gateways", "NatGateways", Filter=states)
        gateways = _others(found, cluster)
        if gateways and zone_id is not None:
            in_zone = [{"Name": "availability-zone-id", "Values": [zone_id]}]
            with read_errors("ec2:DescribeSubnets"):
                subnets, _ = self._listed("describe_subnets", "Subnets", Filters=in_zone)
            ids = {subnet["SubnetId"] for subnet in subnets}
            # A regional gateway has no subnet, and may be in this zone too.
            gateways = [gateway for gateway in gateways if gateway.get("SubnetId") in {None, *ids}]
        return UsedAmount(amount=len(gateways), complete=complete)

    def gp3_tib_excluding(self, cluster: str) -> UsedAmount:
        gp3 = [{"Name": "volume-type", "Values": ["gp3"]}]
        with read_errors("ec2:DescribeVolumes"):
            found, complete = self._listed("describe_volumes", "Volumes", Filters=gp3)
        gib = sum(volume["Size"] for volume in _others(found, cluster))
        return UsedAmount(amount=gib / GIB_PER_TIB, complete=complete)

    def network_interfaces_excluding(self, cluster: str) -> UsedAmount:
        with read_errors("ec2:DescribeNetworkInterfaces"):
            found, complete = self._listed("describe_network_interfaces", "NetworkInterfaces")
        return UsedAmount(amount=len(_others(found, cluster)), complete=complete)

    def pcs_clusters(self) -> Collection[str]:
        """The names of all AWS PCS clusters of the region."""
        with read_errors("pcs:ListClusters"):
            pages = self.client("pcs").get_paginator("list_clusters").paginate()
            return [cluster["name"] for page in pages for cluster in page["clusters"]]
        return []

    def _listed(self, operation: str, key: str, **arguments: Any) -> tuple[Sequence[Mapping[str, Any]], bool]:
        """The entries of the first pages, and whether these are all entries."""
        entries: list[Mapping[str, Any]] = []
        paginator = self.client("ec2").get_paginator(operation)
        pages = paginator.paginate(**arguments, PaginationConfig={"PageSize": _LARGEST_PAGE})
        for number, page in enumerate(pages, start=1):
            entries += page[key]
            if number == _MAX_PAGES and page.get("NextToken"):
                return entries, False
        return entries, True


def _others(entries: Iterable[Mapping[str, Any]], cluster: str) -> Sequence[Mapping[str, Any]]:
    """The entries without the tag of the cluster. Network interfaces have their tags in TagSet."""
    own = {"Key": CLUSTER_TAG, "Value": cluster}
    return [entry for entry in entries if own not in (entry.get("Tags") or entry.get("TagSet") or ())]
