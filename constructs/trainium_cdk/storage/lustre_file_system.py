"""FSx for Lustre: a fast shared file system."""

from collections.abc import Iterator
from dataclasses import replace

from aws_cdk import RemovalPolicy, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from constructs import Construct

from trainium_cdk.cdk_types import Subnet
from trainium_cdk.checks import check, check_removal_policy, form, refuse, whole_gibibytes
from trainium_cdk.network.security_group import LOOPBACK
from trainium_cdk.network.subnet_selection import check_subnet
from trainium_cdk.storage.node_file_system import (
    NodeFileSystem,
    check_file_system_id,
    keep_when_replaced,
)
from trainium_core.facts import facts
from trainium_core.plan.node_settings import Mount
from trainium_userdata.locations import NodeLocations


class LustreFileSystem(NodeFileSystem):
    """A new FSx for Lustre file system on SSD, compressed (LZ4) and encrypted, without backups.

    Its type is SCRATCH_2 unless a throughput is given: 200 MB/s per TiB at the lowest price. The data of SCRATCH_2 is
    not replicated, so keep important checkpoints in S3 too. `dns_name` and `mount_name` are its address,
    `security_group` is the CDK object.

    Example:

        scratch = LustreFileSystem(
            stack, "Scratch", vpc=vpc, subnet=vpc.private_subnets[0], size=Size.gibibytes(1200)
        )
        existing = LustreFileSystem.from_lustre_file_system_attributes(
            stack,
            "Existing",
            file_system_id="fs-0123456789abcdef0",
            mount_name="abcdefgh",
            security_group_id="sg-0123456789abcdef0",
        )
    """

    kind: Mount = "lustre"
    mount_name: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: Subnet,
        size: Size,
        per_unit_storage_throughput: int | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """
        Args:
            vpc: VPC of the nodes.
            subnet: Subnet of the nodes; it must outlive a retained file system.
            size: 1200 GiB, or a multiple of 2400 GiB.
            per_unit_storage_throughput: 125, 250, 500 or 1000 MB/s per TiB, for PERSISTENT_2, whose data is replicated.
                Default: SCRATCH_2.
            removal_policy: RETAIN keeps the file system and its security group when the stack is deleted. A file system
                that an update replaces, for example for another subnet, is always kept. Default: DESTROY.

        Raises:
            PropsError: FSx does not support the size or the throughput, the removal policy is SNAPSHOT, or the subnet
                is in another VPC.
        """
        super().__init__(scope, construct_id)
        check_subnet(self, vpc, subnet)
        self.subnet = subnet
        check_removal_policy(self, removal_policy)
        lustre, gib = facts()["fsx_lustre"], whole_gibibytes(self, "size", size)
        smallest, step = lustre["smallest_gib"], lustre["step_gib"]
        if gib <= 0 or (gib != smallest and gib % step):
            allowed = f"{smallest} GiB, or a multiple of {step} GiB"
            raise refuse(self, "size", f"{gib} GiB", allowed=allowed, fix="choose one of these sizes")
        throughputs = lustre["persistent_mbps_per_tib"]
        throughput = per_unit_storage_throughput
        if throughput is not None and throughput not in throughputs:
            allowed = ", ".join(map(str, throughputs))
            fix = "choose one of these, or remove it"
            raise refuse(self, "per_unit_storage_throughput", throughput, allowed=allowed, fix=fix)
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="FSx for Lustre: its nodes only"
        )
        group = self.security_group.node.default_child
        assert isinstance(group, ec2.CfnSecurityGroup)
        keep_when_replaced(group, removal_policy)
        # EC2 allows all egress from a group whose own resource has no egress rule, even if rules are added separately.
        self.security_group.add_egress_rule(LOOPBACK, next(_ports()), "nowhere: takes the place of the default rule")
        for port in _ports():
            # The file servers connect to each other; FSx rejects a security group that does not allow it.
            self.security_group.add_ingress_rule(self.security_group, port, "among the file servers")
            self.security_group.add_egress_rule(self.security_group, port, "among the file servers")
        file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=lustre["version"],
            storage_capacity=gib,
            storage_type="SSD",
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type="PERSISTENT_2" if throughput else "SCRATCH_2",
                per_unit_storage_throughput=throughput,
                data_compression_type="LZ4",
                # SCRATCH_2 does not support backups.
                automatic_backup_retention_days=0 if throughput else None,
            ),
        )
        keep_when_replaced(file_system, removal_policy)
        file_system.node.add_dependency(self.security_group)
        self.dns_name: str = file_system.attr_dns_name
        self.mount_name = file_system.attr_lustre_mount_name

    @staticmethod
    def from_lustre_file_system_attributes(
        scope: Construct, construct_id: str, *, file_system_id: str, mount_name: str, security_group_id: str
    ) -> "LustreFileSystem":
        """Import an existing file system. Only rules are added to its security group.

        Args:
            file_system_id: ID of the file system, such as fs-0123456789abcdef0.
            mount_name: Mount name of the file system, as FSx shows it.
            security_group_id: A security group of the file system's network interfaces, to which rules for the nodes
                are added.

        Raises:
            PropsError: An ID or the mount name is invalid.
        """
        return _ImportedLustre(
            scope,
            construct_id,
            file_system_id=file_system_id,
            mount_name=mount_name,
            security_group_id=security_group_id,
        )

    def allow(self, nodes: ec2.ISecurityGroup) -> None:
        """Open Lustre's ports between the file system and the nodes in both directions, because Lustre servers connect
        to clients too.

        Args:
            nodes: Security group of the nodes.
        """
        for port in _ports():
            nodes.connections.allow_to(self.security_group, port, "Lustre from the nodes")
            nodes.connections.allow_from(self.security_group, port, "Lustre to the nodes")

    def added_to(self, locations: NodeLocations) -> NodeLocations:
        """The locations with this file system added.

        Args:
            locations: Locations of the nodes' user data.
        """
        return replace(locations, lustre_dns=self.dns_name, lustre_mount_name=self.mount_name)


class _ImportedLustre(LustreFileSystem):
    def __init__(
        self, scope: Construct, construct_id: str, *, file_system_id: str, mount_name: str, security_group_id: str
    ) -> None:
        Construct.__init__(self, scope, construct_id)
        self.subnet = None
        check_file_system_id(self, file_system_id)
        check(
            self,
            form("fsx_lustre_mount_name", mount_name, field="mount_name"),
            form("fsx_lustre_security_group", security_group_id, field="security_group_id"),
        )
        stack = Stack.of(self)
        self.security_group = ec2.SecurityGroup.from_security_group_id(
            self, "SecurityGroup", security_group_id, allow_all_outbound=False
        )
        self.dns_name: str = f"{file_system_id}.fsx.{stack.region}.{stack.url_suffix}"
        self.mount_name = mount_name


def _ports() -> Iterator[ec2.Port]:
    for first, last in facts()["fsx_lustre_network"]["tcp_ports"]:
        yield ec2.Port.tcp(first) if first == last else ec2.Port.tcp_range(first, last)
