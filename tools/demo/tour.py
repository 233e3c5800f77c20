"""Tables of the resources of a deployed cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import RenderableType

from tools.demo.deployed_cluster import DeployedCluster
from trainium_cli.terminal import Screen, pairs, table
from trainium_core.plurals import count
from trainium_wire.node_record import NodeRecord

_ALL_TRAFFIC = "-1"


def show_cluster(screen: Screen, cluster: DeployedCluster) -> None:
    """Print one table for each part of the cluster, and the outputs of its stack."""
    for title, drawn in _tables(cluster):
        screen.print(f"\n{title}", style="bold")
        screen.print(drawn)


def _tables(cluster: DeployedCluster) -> Iterator[tuple[str, RenderableType]]:
    yield "Network", table(["Resource", "ID", "Details"], _network(cluster), wrapping=["Details"])
    yield (
        "Rules of the security groups",
        table(["Group", "Direction", "Traffic", "Peer", "Description"], _rules(cluster), wrapping=["Description"]),
    )
    yield (
        f"Nodes: {_in_common(cluster.instances)}",
        table(
            ["Instance", "State", "Address", "Network interfaces", "Root volume", "Metadata service"],
            [_node(cluster, instance) for instance in cluster.instances],
            wrapping=["Network interfaces", "Root volume", "Metadata service"],
        ),
    )
    yield (
        "What the nodes reported",
        table(["Instance", "State", "Check", "Expected", "Found"], _reports(cluster.records), wrapping=["Found"]),
    )
    yield "Buckets", table(["Bucket", "Details"], _buckets(cluster), wrapping=["Bucket", "Details"])
    outputs = [(output["OutputKey"], output["OutputValue"]) for output in cluster.outputs]
    yield "Outputs of the stack", pairs(outputs, label_width=12)


def _network(cluster: DeployedCluster) -> Iterator[Sequence[str]]:
    for vpc in cluster.vpcs:
        yield "VPC", vpc["VpcId"], vpc["CidrBlock"]
    for subnet in cluster.subnets:
        public = "public" if subnet["MapPublicIpOnLaunch"] else "no public addresses"
        yield "subnet", subnet["SubnetId"], f"zone {subnet['AvailabilityZoneId']}, {subnet['CidrBlock']}, {public}"
    for endpoint in cluster.endpoints:
        service = endpoint["ServiceName"].rpartition(".")[2]
        kind = endpoint["VpcEndpointType"].lower()
        yield f"endpoint to {service}", endpoint["VpcEndpointId"], f"{kind}, {endpoint['State']}"
    for kind, resource_type in (
        ("internet gateway", "AWS::EC2::InternetGateway"),
        ("NAT gateway", "AWS::EC2::NatGateway"),
    ):
        yield kind, ", ".join(cluster.ids(resource_type)) or "none", ""


def _rules(cluster: DeployedCluster) -> Iterator[Sequence[str]]:
    for group in cluster.security_groups:
        for direction, permissions in (("in", group["IpPermissions"]), ("out", group["IpPermissionsEgress"])):
            for permission in permissions:
                for key, peer in _peers(permission):
                    to = "itself" if peer[key] == group["GroupId"] else peer[key]
                    yield group["GroupId"], direction, _traffic(permission), to, peer.get("Description", "")


def _peers(permission: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """The sources or destinations of a permission, each with its key."""
    for collection, key in (
        ("UserIdGroupPairs", "GroupId"),
        ("IpRanges", "CidrIp"),
        ("Ipv6Ranges", "CidrIpv6"),
        ("PrefixListIds", "PrefixListId"),
    ):
        yield from ((key, peer) for peer in permission.get(collection, []))


def _traffic(permission: dict[str, Any]) -> str:
    if permission["IpProtocol"] == _ALL_TRAFFIC:
        return "all protocols"
    ports = {permission["FromPort"], permission["ToPort"]}
    return f"{permission['IpProtocol']} {'-'.join(str(port) for port in sorted(ports))}"


def _in_common(instances: Sequence[dict[str, Any]]) -> str:
    """Type, purchase option, image and placement group of the nodes: the common value of each, or all values."""

    def values(of: Callable[[dict[str, Any]], Any]) -> str:
        return ", ".join(sorted({str(of(instance)) for instance in instances}))

    market = values(lambda instance: instance.get("InstanceLifecycle", "on-demand"))
    types, images = values(lambda instance: instance["InstanceType"]), values(lambda instance: instance["ImageId"])
    groups = values(lambda instance: instance["Placement"].get("GroupName", "none"))
    return f"{types} {market}, {images}, placement group {groups}"


def _node(cluster: DeployedCluster, instance: dict[str, Any]) -> Sequence[str]:
    attached = [v for v in cluster.volumes if v["Attachments"][0]["InstanceId"] == instance["InstanceId"]]
    volumes = (f"{v['Size']} GiB {v['VolumeType']}, {'' if v['Encrypted'] else 'not '}encrypted" for v in attached)
    options = instance["MetadataOptions"]
    version = "IMDSv2 only" if options["HttpTokens"] == "required" else "IMDSv1 and v2"
    return (
        instance["InstanceId"],
        instance["State"]["Name"],
        instance["PrivateIpAddress"],
        _interfaces(instance["NetworkInterfaces"]),
        "; ".join(volumes),
        f"{version}, {options['HttpPutResponseHopLimit']} hops",
    )


def _interfaces(interfaces: Iterable[dict[str, Any]]) -> str:
    """`8 efa on cards 0-7`, for each type of interface."""

    def interface_type(interface: dict[str, Any]) -> str:
        return interface["InterfaceType"]

    by_type = groupby(sorted(interfaces, key=interface_type), key=interface_type)
    cards = {
        name: sorted(interface["Attachment"]["NetworkCardIndex"] for interface in group) for name, group in by_type
    }
    return ", ".join(
        f"{len(indices)} {name} on card{f's {indices[0]}-{indices[-1]}' if len(indices) > 1 else f' {indices[0]}'}"
        for name, indices in cards.items()
    )


def _reports(records: Iterable[NodeRecord]) -> Iterator[Sequence[str]]:
    for record in records:
        about = [record.instance_id, f"{record.state} {record.reason}".strip()]
        for check in record.checks:
            yield *about, check.name, check.expected, check.found
            about = ["", ""]


def _buckets(cluster: DeployedCluster) -> Iterator[Sequence[str]]:
    s3 = cluster.client("s3")
    for bucket in cluster.ids("AWS::S3::Bucket"):
        encryption = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"][0]
        algorithm = encryption["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"]
        blocked = all(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
        objects = s3.list_objects_v2(Bucket=bucket)["KeyCount"]
        public = "all public access blocked" if blocked else "public access is possible"
        yield bucket, f"encrypted with {algorithm}, {public}, {count(objects, 'object')}"
