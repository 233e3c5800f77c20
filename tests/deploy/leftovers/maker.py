"""Creates the leftovers of a test."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainium_runtime.naming import CLUSTER_TAG

Client = Callable[[str], Any]

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Creates resources for a cluster and a stack.

    Attributes:
        number: The second byte of addresses, so that networks do not overlap.
    """

    client: Client
    cluster: str
    stack: str
    number: int

    def name(self, kind: str) -> str:
        return f"{self.stack}-{kind}"

    @property
    def tags(self) -> list[dict[str, str]]:
        return [{"Key": CLUSTER_TAG, "Value": self.cluster}]

    @property
    def tag_map(self) -> dict[str, str]:
        return {CLUSTER_TAG: self.cluster}

    def specification(self, resource_type: str) -> list[dict[str, Any]]:
        return [{"ResourceType": resource_type, "Tags": self.tags}]

    def create_vpc(self) -> str:
        """Create a VPC without a tag, for resources that need one."""
        return self.client("ec2").create_vpc(CidrBlock=f"10.{self.number}.0.0/16")["Vpc"]["VpcId"]

    def create_subnet(self) -> str:
        vpc = self.create_vpc()
        parameters = {"VpcId": vpc, "CidrBlock": f"10.{self.number}.1.0/24"}
        return self.client("ec2").create_subnet(**parameters)["Subnet"]["SubnetId"]

    def create_role(self) -> str:
        name = self.name(f"Helper{self.number}")
        return self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]


Creator = Callable[[Maker], str]
"""Creates one resource, and returns the name that an audit shows."""
