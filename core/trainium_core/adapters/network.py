"""Asks EC2 about zones, VPCs and subnets."""

from collections.abc import Collection

from trainium_core.adapters.aws_service import AwsService, asking


class AwsNetwork(AwsService):
    def zones_offering(self, instance_type: str) -> Collection[str]:
        with asking("ec2:DescribeInstanceTypeOfferings"):
            answer = self.client("ec2").describe_instance_type_offerings(
                LocationType="availability-zone-id",
                Filters=[{"Name": "instance-type", "Values": [instance_type]}],
            )
        return {offering["Location"] for offering in answer["InstanceTypeOfferings"]}

    def subnet_zone(self, *, subnet_id: str, vpc_id: str) -> str | None:
        filters = [{"Name": "subnet-id", "Values": [subnet_id]}, {"Name": "vpc-id", "Values": [vpc_id]}]
        with asking("ec2:DescribeSubnets"):
            subnets = self.client("ec2").describe_subnets(Filters=filters)["Subnets"]
        return subnets[0]["AvailabilityZoneId"] if subnets else None
