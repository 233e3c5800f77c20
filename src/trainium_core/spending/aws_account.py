"""Reads scaling activities from Auto Scaling, and billed amounts from Cost Explorer."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from trainium_core.audit.aws_account import AwsAuditedAccount
from trainium_core.aws.capacity import AwsCapacity
from trainium_core.clusters.cluster import ClusterStacks
from trainium_core.spending.node_runs import ScalingActivity
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG

COST_EXPLORER_REGION = "us-east-1"
"""Cost Explorer has one endpoint for all regions."""

_METRIC = "UnblendedCost"
_ENDED = ("Successful", "Failed", "Cancelled")


class AwsSpendingAccount(AwsAuditedAccount):
    """Methods raise UnavailableError if a request fails or is denied."""

    def __init__(self, region: str, *, clients: Clients | None = None, known: ClusterStacks | None = None) -> None:
        super().__init__(region, clients=clients, known=known)
        self.capacity = AwsCapacity(region, clients=self._clients)

    def scaling_activities(self, group: str) -> Sequence[ScalingActivity]:
        """The scaling activities of a group in the last six weeks, also of a deleted group."""
        with read_errors("autoscaling:DescribeScalingActivities"):
            pages = self.client("autoscaling").get_paginator("describe_scaling_activities")
            arguments = {"AutoScalingGroupName": group, "IncludeDeletedGroups": True}
            return [
                ScalingActivity(
                    description=activity.get("Description", ""),
                    began=activity["StartTime"],
                    succeeded=activity["StatusCode"] == "Successful",
                    under_way=activity["StatusCode"] not in _ENDED,
                )
                for page in pages.paginate(**arguments)
                for activity in page["Activities"]
            ]

    def billed(self, cluster: str, start: date, end: date) -> Mapping[str, Decimal]:
        """Billed US dollars by service, for resources with the tag trn:cluster. AWS bills this request.

        Args:
            cluster: Name of the cluster.
            start: The first day.
            end: The day after the last.
        """
        with read_errors("ce:GetCostAndUsage"):
            answer = self._clients.client("ce", COST_EXPLORER_REGION).get_cost_and_usage(
                TimePeriod={"Start": start.isoformat(), "End": end.isoformat()},
                Granularity="MONTHLY",
                Metrics=[_METRIC],
                Filter={"Tags": {"Key": CLUSTER_TAG, "Values": [cluster]}},
                GroupBy=[{"Type": "DIMENSION", "Key": "SERVICE"}],
            )
            if answer.get("NextPageToken"):
                why = "AWS bills each page of Cost Explorer's answer, and trn reads only the first of several pages"
                raise UnavailableError(f"{why}: see Cost Explorer's console")
            totals = dict[str, Decimal]()
            for month in answer["ResultsByTime"]:
                for group in month.get("Groups", ()):
                    amount = group["Metrics"][_METRIC]
                    if amount["Unit"] != "USD":
                        raise UnavailableError(f"Cost Explorer returned amounts in {amount['Unit']}, not in USD")
                    totals[group["Keys"][0]] = totals.get(group["Keys"][0], Decimal(0)) + Decimal(amount["Amount"])
            return totals
