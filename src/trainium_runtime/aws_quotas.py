"""Quotas from Service Quotas, and their use from EC2 and CloudWatch."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.quota import Quota, QuotaRequest, RunningInstance, UsageMetric
from trainium_runtime.quota_need import is_in_family
from trainium_runtime.tags import tag_values

# Stopping and stopped instances do not count (EC2 documentation, Reserved Instance quotas). According to it, neither do
# pending ones; they are counted here because they will run soon.
_COUNTED = ("pending", "running")
_ENDED = ("stopping", "shutting-down", "terminated")
_LARGEST_PAGE = 1000  # of DescribeInstances

_METRIC_PERIOD = timedelta(minutes=5)
_METRIC_AGE = 3 * _METRIC_PERIOD  # older data points are ignored


class AwsQuotas(AwsService):
    """Quotas of the account in a region, as the protocol Quotas requires."""

    def quota(self, service: str, code: str) -> Quota | None:
        client, key = self.client("service-quotas"), {"ServiceCode": service, "QuotaCode": code}
        with read_errors("servicequotas:GetServiceQuota", absent=("NoSuchResourceException",)):
            return _quota(client.get_service_quota(**key)["Quota"])
        with read_errors("servicequotas:GetAWSDefaultServiceQuota", absent=("NoSuchResourceException",)):
            return _quota(client.get_aws_default_service_quota(**key)["Quota"], is_default=True)
        return None

    def quota_named(self, service: str, name: str) -> Quota | None:
        for operation, permission, is_default in (
            ("list_service_quotas", "servicequotas:ListServiceQuotas", False),
            ("list_aws_default_service_quotas", "servicequotas:ListAWSDefaultServiceQuotas", True),
        ):
            with read_errors(permission, absent=("NoSuchResourceException",)):
                for page in self.client("service-quotas").get_paginator(operation).paginate(ServiceCode=service):
                    for entry in page["Quotas"]:
                        if entry["QuotaName"].casefold() == name.casefold():
                            return _quota(entry, is_default=is_default)
        return None

    def quota_requests(self, service: str, code: str) -> Sequence[QuotaRequest]:
        """Open requests, and closed ones that AWS still keeps (90 days), newest first."""
        with read_errors("servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"):
            pages = self.client("service-quotas").get_paginator("list_requested_service_quota_change_history_by_quota")
            requests = [
                quota_request(entry)
                for page in pages.paginate(ServiceCode=service, QuotaCode=code)
                for entry in page["RequestedQuotas"]
            ]
        return sorted(requests, key=lambda request: request.created, reverse=True)

    def metered_use(self, metric: UsageMetric) -> float | None:
        """The latest data point of the metric; None without a recent one, for example if nothing has been used."""
        now = datetime.now(UTC)
        with read_errors("cloudwatch:GetMetricStatistics"):
            points = self.client("cloudwatch").get_metric_statistics(
                Namespace=metric.namespace,
                MetricName=metric.name,
                Dimensions=[{"Name": name, "Value": value} for name, value in metric.dimensions.items()],
                StartTime=now - _METRIC_AGE,
                EndTime=now,
                Period=int(_METRIC_PERIOD.total_seconds()),
                Statistics=[metric.statistic],
            )["Datapoints"]
        latest = max(points, key=lambda point: point["Timestamp"], default=None)
        return latest[metric.statistic] if latest else None

    def running_instances(self, family: str) -> Sequence[RunningInstance]:
        return self._instances(family, _COUNTED)

    def ended_instances(self, family: str) -> Sequence[RunningInstance]:
        """Instances that are stopping, shutting down or terminated. EC2 lists terminated ones for about an hour."""
        return self._instances(family, _ENDED)

    def unused_reserved_vcpus(self, family: str) -> int:
        with read_errors("ec2:DescribeCapacityReservations"):
            pages = self.client("ec2").get_paginator("describe_capacity_reservations")
            unused = [
                reservation
                for page in pages.paginate(Filters=[{"Name": "state", "Values": ["active"]}])
                for reservation in page["CapacityReservations"]
                if is_in_family(family, reservation["InstanceType"])
                and reservation.get("ReservationType", "default") == "default"
                and reservation["AvailableInstanceCount"]
            ]
        if not unused:
            return 0
        # A reservation shared by another account counts against that account's quota.
        own = [reservation for reservation in unused if reservation["OwnerId"] == self._account_id()]
        vcpus = self._vcpus({reservation["InstanceType"] for reservation in own})
        return sum(entry["AvailableInstanceCount"] * vcpus[entry["InstanceType"]] for entry in own)

    def _instances(self, family: str, states: Sequence[str]) -> Sequence[RunningInstance]:
        with read_errors("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances")
            in_states = {"Name": "instance-state-name", "Values": [*states]}
            instances = [
                instance
                for page in pages.paginate(Filters=[in_states], PaginationConfig={"PageSize": _LARGEST_PAGE})
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
                if is_in_family(family, instance["InstanceType"])
            ]
        vcpus = self._vcpus({instance["InstanceType"] for instance in instances})
        return [
            RunningInstance(
                vcpus=vcpus[instance["InstanceType"]],
                capacity=instance.get("InstanceLifecycle", "on-demand"),
                cluster=tag_values(instance.get("Tags")).get(CLUSTER_TAG),
            )
            for instance in instances
        ]

    def _vcpus(self, instance_types: Collection[str]) -> dict[str, int]:
        """vCPUs by type as quotas count them: those of the type, regardless of an instance's CPU options."""
        if not instance_types:
            return {}
        with read_errors("ec2:DescribeInstanceTypes"):
            response = self.client("ec2").describe_instance_types(InstanceTypes=sorted(instance_types))
        return {entry["InstanceType"]: entry["VCpuInfo"]["DefaultVCpus"] for entry in response["InstanceTypes"]}

    def _account_id(self) -> str:
        with read_errors("sts:GetCallerIdentity"):
            response = self.client("sts").get_caller_identity()
        return response["Account"]


def quota_request(entry: Mapping[str, Any]) -> QuotaRequest:
    """A request as Service Quotas shows it."""
    return QuotaRequest(
        request_id=entry["Id"],
        desired=entry["DesiredValue"],
        status=entry["Status"],
        created=entry["Created"],
        updated=entry.get("LastUpdated"),
        case_id=entry.get("CaseId"),
    )


def _quota(entry: Mapping[str, Any], *, is_default: bool = False) -> Quota:
    if "Value" not in entry:
        reason = entry.get("ErrorReason", {})
        message = (
            ": ".join(filter(None, (reason.get("ErrorCode"), reason.get("ErrorMessage")))) or "it reports no value"
        )
        raise UnavailableError(f"Service Quotas has no value for {entry['QuotaCode']}: {message}")
    metric = entry.get("UsageMetric")
    return Quota(
        code=entry["QuotaCode"],
        name=entry["QuotaName"],
        limit=entry["Value"],
        is_default=is_default,
        usage_metric=UsageMetric(
            namespace=metric["MetricNamespace"],
            name=metric["MetricName"],
            dimensions=metric["MetricDimensions"],
            statistic=metric.get("MetricStatisticRecommendation", "Maximum"),
        )
        if metric
        else None,
    )
