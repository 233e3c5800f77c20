"""Asks Service Quotas for limits and EC2 for what runs."""

from collections.abc import Collection, Sequence

from trainium_core.account import RunningInstance
from trainium_core.adapters.aws_service import AwsService, asking
from trainium_core.instance_type import family_of
from trainium_core.naming import CLUSTER_TAG

_COUNTED_STATES = ["pending", "running"]


class AwsQuotas(AwsService):
    def quota_limit(self, code: str) -> float:
        with asking("servicequotas:GetServiceQuota"):
            client = self.client("service-quotas")
            try:
                answer = client.get_service_quota(ServiceCode="ec2", QuotaCode=code)
            except client.exceptions.NoSuchResourceException:
                answer = None
        if answer is None:
            with asking("servicequotas:GetAWSDefaultServiceQuota"):
                answer = client.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=code)
        return answer["Quota"]["Value"]

    def running_instances(self, family: str) -> Sequence[RunningInstance]:
        with asking("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances")
            states = {"Name": "instance-state-name", "Values": _COUNTED_STATES}
            found = [
                instance
                for page in pages.paginate(Filters=[states])
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
                if family_of(instance["InstanceType"]) == family
            ]
        vcpus = self._vcpus({instance["InstanceType"] for instance in found})
        return [
            RunningInstance(
                vcpus=vcpus[instance["InstanceType"]],
                capacity=instance.get("InstanceLifecycle", "on-demand"),
                cluster=next((tag["Value"] for tag in instance.get("Tags", []) if tag["Key"] == CLUSTER_TAG), None),
            )
            for instance in found
        ]

    def _vcpus(self, instance_types: Collection[str]) -> dict[str, int]:
        if not instance_types:
            return {}
        with asking("ec2:DescribeInstanceTypes"):
            answer = self.client("ec2").describe_instance_types(InstanceTypes=sorted(instance_types))
        return {entry["InstanceType"]: entry["VCpuInfo"]["DefaultVCpus"] for entry in answer["InstanceTypes"]}
