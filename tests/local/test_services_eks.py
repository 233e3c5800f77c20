"""Node groups that EKS refuses."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import make_network

ROLE = "arn:aws:iam::123456789012:role/nodes"


def create_group(eks: Any, subnet: str, version: str, ami_type: str) -> None:
    name = f"of-{version.replace('.', '-')}"
    eks.create_cluster(name=name, version=version, roleArn=ROLE, resourcesVpcConfig={"subnetIds": [subnet]})
    try:
        eks.create_nodegroup(
            clusterName=name, nodegroupName="system", subnets=[subnet], nodeRole=ROLE, amiType=ami_type
        )
        eks.delete_nodegroup(clusterName=name, nodegroupName="system")
    finally:
        eks.delete_cluster(name=name)


def test_amazon_linux_2_ends_with_kubernetes_1_32(embedded_aws: EmbeddedAws) -> None:
    eks, subnet = embedded_aws.client("eks"), make_network(embedded_aws, zone_id="usw2-az4").subnet
    create_group(eks, subnet, "1.32", "AL2_x86_64")
    create_group(eks, subnet, "1.33", "AL2023_x86_64_STANDARD")
    with pytest.raises(ClientError, match=r"AL2_x86_64 is only supported for kubernetes versions 1.32 or earlier"):
        create_group(eks, subnet, "1.33", "AL2_x86_64")
