"""The EC2 quota that a cluster needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class QuotaNeed:
    """The vCPUs of one EC2 quota that the nodes of a cluster use in a region.

    Attributes:
        family: Letters at the start of the instance types that the quota counts, or a generation such as p5.
        capacity: on-demand or spot.
    """

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
        """Whether this is more than an earlier need of the same cluster, or for another quota.

        The cluster may have had another name.
        """
        same = (self.region, self.code) == (earlier.region, earlier.code)
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
        """From the properties that CloudFormation passes, all of which are text."""
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


def type_family(instance_type: str) -> str:
    """The letters at the start of an instance type, by which EC2 counts most quotas."""
    return re.split(r"[^a-z]", instance_type)[0]


def type_generation(instance_type: str) -> str:
    """The letters and the number at the start of an instance type, by which EC2 counts spot instances of P types."""
    return re.match(r"[a-z]*[0-9]*", instance_type)[0]  # pyright: ignore[reportOptionalSubscript]


def is_in_family(family: str, instance_type: str) -> bool:
    """Whether the instance type belongs to the family or the generation."""
    return family in (type_family(instance_type), type_generation(instance_type))
