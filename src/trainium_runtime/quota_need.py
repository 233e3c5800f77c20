"""What a cluster needs of an EC2 quota."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class QuotaNeed:
    """vCPUs that the nodes of a cluster take of one EC2 quota in its region. `capacity`: on-demand or spot."""

    code: str
    name: str
    region: str
    family: str
    capacity: str
    cluster: str
    nodes: int
    vcpus_per_node: int

    @property
    def vcpus(self) -> int:
        return self.nodes * self.vcpus_per_node

    def exceeds(self, earlier: "QuotaNeed") -> bool:
        """Whether this takes more of a quota than an earlier need of the same cluster, or takes of another quota."""
        same = (self.region, self.code, self.cluster) == (earlier.region, earlier.code, earlier.cluster)
        return not same or self.vcpus > earlier.vcpus

    def to_properties(self) -> dict[str, str | int]:
        """As properties of a CloudFormation resource."""
        return {
            "Code": self.code,
            "Name": self.name,
            "Region": self.region,
            "Family": self.family,
            "Capacity": self.capacity,
            "Cluster": self.cluster,
            "Nodes": self.nodes,
            "VcpusPerNode": self.vcpus_per_node,
        }

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "QuotaNeed":
        """From the properties as CloudFormation hands them over: every value is text."""
        return cls(
            code=properties["Code"],
            name=properties["Name"],
            region=properties["Region"],
            family=properties["Family"],
            capacity=properties["Capacity"],
            cluster=properties["Cluster"],
            nodes=int(properties["Nodes"]),
            vcpus_per_node=int(properties["VcpusPerNode"]),
        )


def family_of(instance_type: str) -> str:
    """The letters an instance type's name begins with, by which EC2 counts its quotas."""
    return re.split(r"[^a-z]", instance_type)[0]
