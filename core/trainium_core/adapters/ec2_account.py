"""An AWS account in one region, asked through boto3. Nothing here changes anything."""

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainium_core.account import CannotTellError, Identity, Image, RunningInstance
from trainium_core.instance_type import family_of
from trainium_core.naming import CLUSTER_TAG

PATIENCE = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
"""How long any question may take, in seconds and attempts."""

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_COUNTED_STATES = ["pending", "running"]


class Ec2Account:
    """Answers trainium_core.account.Account for the credentials that boto3 finds."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[str, Any] = {}

    def identity(self) -> Identity:
        with _asking("sts:GetCallerIdentity"):
            answer = self._client("sts").get_caller_identity()
        endpoint = str(self._client("sts").meta.endpoint_url)
        return Identity(account=answer["Account"], arn=answer["Arn"], endpoint=None if _is_aws(endpoint) else endpoint)

    def quota_limit(self, code: str) -> float:
        with _asking("servicequotas:GetServiceQuota"):
            client = self._client("service-quotas")
            try:
                answer = client.get_service_quota(ServiceCode="ec2", QuotaCode=code)
            except client.exceptions.NoSuchResourceException:
                answer = None
        if answer is None:
            with _asking("servicequotas:GetAWSDefaultServiceQuota"):
                answer = client.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=code)
        return answer["Quota"]["Value"]

    def running_instances(self, family: str) -> Sequence[RunningInstance]:
        with _asking("ec2:DescribeInstances"):
            pages = self._client("ec2").get_paginator("describe_instances")
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

    def zones_offering(self, instance_type: str) -> Collection[str]:
        with _asking("ec2:DescribeInstanceTypeOfferings"):
            answer = self._client("ec2").describe_instance_type_offerings(
                LocationType="availability-zone-id",
                Filters=[{"Name": "instance-type", "Values": [instance_type]}],
            )
        return {offering["Location"] for offering in answer["InstanceTypeOfferings"]}

    def subnet_zone(self, *, subnet_id: str, vpc_id: str) -> str | None:
        filters = [{"Name": "subnet-id", "Values": [subnet_id]}, {"Name": "vpc-id", "Values": [vpc_id]}]
        with _asking("ec2:DescribeSubnets"):
            subnets = self._client("ec2").describe_subnets(Filters=filters)["Subnets"]
        return subnets[0]["AvailabilityZoneId"] if subnets else None

    def parameter(self, name: str) -> str | None:
        with _asking("ssm:GetParameter", absent=("ParameterNotFound", "not a valid namespace")):
            return self._client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        return None

    def image(self, image_id: str) -> Image | None:
        with _asking("ec2:DescribeImages", absent=("InvalidAMIID.",)):
            for image in self._client("ec2").describe_images(ImageIds=[image_id])["Images"]:
                root = image.get("RootDeviceName", "none")
                volumes = [m for m in image.get("BlockDeviceMappings", []) if m.get("DeviceName") == root]
                size = sum(volume.get("Ebs", {}).get("VolumeSize", 0) for volume in volumes)
                return Image(image_id=image_id, state=image["State"], root_device_name=root, root_volume_gib=size)
        return None

    def stack_status(self, name: str) -> str | None:
        # CloudFormation has no code of its own for a stack that does not exist.
        with _asking("cloudformation:DescribeStacks", absent=("does not exist",)):
            return self._client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
        return None

    def _vcpus(self, instance_types: Collection[str]) -> dict[str, int]:
        if not instance_types:
            return {}
        with _asking("ec2:DescribeInstanceTypes"):
            answer = self._client("ec2").describe_instance_types(InstanceTypes=sorted(instance_types))
        return {entry["InstanceType"]: entry["VCpuInfo"]["DefaultVCpus"] for entry in answer["InstanceTypes"]}

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.Session(region_name=self._region).client(service, config=PATIENCE)
        return self._clients[service]


@contextmanager
def _asking(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn what can go wrong into CannotTellError, and an error that says `absent` into an end of the block."""
    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        if any(sign in f"{code} {message}" for sign in absent):
            return
        if code in _DENIED:
            raise CannotTellError(f"not allowed to look: the permission {permission} is missing") from error
        raise CannotTellError(f"AWS answered {code}: {message}") from error
    except BotoCoreError as error:
        raise CannotTellError(str(error)) from error


def _is_aws(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
