"""FSx for Lustre: the fast file system that all nodes share."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from constructs import Construct

from trainium_cdk.arguments import check_number, check_setting, check_switch
from trainium_cdk.cdk_types import Subnet
from trainium_cdk.node_file_system import NodeFileSystem, check_file_system_id, keep_when_replaced
from trainium_cdk.props_error import refuse
from trainium_cdk.security_group import LOOPBACK
from trainium_cdk.subnet_selection import check_subnet
from trainium_core.facts import facts
from trainium_userdata.locations import NodeLocations


class _Lustre(NodeFileSystem):
    mount_name: str

    @property
    def settings(self) -> Mapping[str, object]:
        """That there is an FSx for Lustre file system, of whatever size."""
        return {"fsx_lustre": facts()["fsx_lustre"]["smallest_gib"]}

    def allow(self, nodes: ec2.ISecurityGroup) -> None:
        """Open Lustre's ports between the file system and the nodes, both ways: its servers call back.

        nodes: the nodes' group.
        """
        for port in _ports():
            nodes.connections.allow_to(self.security_group, port, "Lustre from the nodes")
            nodes.connections.allow_from(self.security_group, port, "Lustre to the nodes")

    def added_to(self, locations: NodeLocations) -> NodeLocations:
        """The locations with this file system among them. locations: what the nodes' user data say."""
        return replace(locations, lustre_dns=self.dns_name, lustre_mount_name=self.mount_name)


class LustreFileSystem(_Lustre):
    """A new FSx for Lustre file system on SSD, compressed (LZ4) and encrypted, that leaves no backup behind.

    SCRATCH_2 unless a throughput is asked for: 200 MB/s for each TiB at the lowest price, for a pilot that ends. Its
    data is not replicated: keep checkpoints that matter in S3 too. `dns_name` and `mount_name` are what a mount needs,
    `security_group` and `file_system` the CDK objects.

    Example:

        scratch = LustreFileSystem(stack, "Scratch", vpc=vpc, subnet=vpc.private_subnets[0], size_gib=1200)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: Subnet,
        size_gib: int,
        persistent_mbps_per_tib: int | None = None,
        retain: bool = False,
    ) -> None:
        """
        vpc: of the nodes.
        subnet: the nodes' own; it must outlive a retained file system.
        size_gib: 1200, or a multiple of 2400.
        persistent_mbps_per_tib: PERSISTENT_2, whose data is replicated, with 125, 250, 500 or 1000 MB/s for each TiB.
            Default: SCRATCH_2.
        retain: keep the file system and its security group at destroy. Default: both are deleted. A file system that an
            update replaces, such as for another subnet, is kept in any case.

        Raises PropsError for sizes and throughputs that FSx does not have, and for what is no VPC or subnet of it.
        """
        super().__init__(scope, construct_id)
        check_subnet(self, vpc, subnet)
        check_switch(self, "retain", retain)
        check_number(self, "size_gib", size_gib, smallest=1, why="FSx takes few sizes")
        check_setting(self, "size_gib", size_gib, setting="fsx_lustre")
        lustre = facts()["fsx_lustre"]
        throughputs = lustre["persistent_mbps_per_tib"]
        known = persistent_mbps_per_tib is None or type(persistent_mbps_per_tib) is int
        if not known or persistent_mbps_per_tib not in (None, *throughputs):
            allowed = ", ".join(map(str, throughputs))
            fix = "choose one of these, or leave it out"
            raise refuse(self, "persistent_mbps_per_tib", persistent_mbps_per_tib, allowed=allowed, fix=fix)
        fate = RemovalPolicy.RETAIN if retain else RemovalPolicy.DESTROY
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="FSx for Lustre: its nodes only"
        )
        group = self.security_group.node.default_child
        assert isinstance(group, ec2.CfnSecurityGroup)
        keep_when_replaced(group, fate)
        # EC2 lets everything out of a group whose own resource holds no rule, whatever rules are added from elsewhere.
        self.security_group.add_egress_rule(LOOPBACK, next(_ports()), "nowhere: takes the place of the default rule")
        for port in _ports():
            # Its file servers connect to each other; FSx creates nothing in a group that forbids it.
            self.security_group.add_ingress_rule(self.security_group, port, "among the file servers")
            self.security_group.add_egress_rule(self.security_group, port, "among the file servers")
        self.file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=lustre["version"],
            storage_capacity=size_gib,
            storage_type="SSD",
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type="PERSISTENT_2" if persistent_mbps_per_tib else "SCRATCH_2",
                per_unit_storage_throughput=persistent_mbps_per_tib,
                data_compression_type="LZ4",
                # Of SCRATCH_2 there are no backups.
                automatic_backup_retention_days=0 if persistent_mbps_per_tib else None,
            ),
        )
        keep_when_replaced(self.file_system, fate)
        self.file_system.node.add_dependency(self.security_group)
        self.dns_name = self.file_system.attr_dns_name
        self.mount_name = self.file_system.attr_lustre_mount_name


class ExistingLustreFileSystem(_Lustre):
    """An FSx for Lustre file system of the user's own, which stays untouched but for rules of its security group.

    Example:

        scratch = ExistingLustreFileSystem(
            stack,
            "Scratch",
            file_system_id="fs-0123456789abcdef0",
            mount_name="abcdefgh",
            security_group_id="sg-0123456789abcdef0",
        )
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, file_system_id: str, mount_name: str, security_group_id: str
    ) -> None:
        """
        file_system_id: the file system, such as fs-0123456789abcdef0.
        mount_name: as FSx shows it.
        security_group_id: a group on the file system's network interfaces; rules for the nodes are added to it.

        Raises PropsError for an id or name of another form.
        """
        super().__init__(scope, construct_id)
        check_file_system_id(self, file_system_id, setting="fsx_lustre")
        check_setting(self, "mount_name", mount_name, setting="fsx_lustre_mount_name")
        check_setting(self, "security_group_id", security_group_id, setting="fsx_lustre_security_group")
        stack = Stack.of(self)
        self.security_group = ec2.SecurityGroup.from_security_group_id(
            self, "SecurityGroup", security_group_id, allow_all_outbound=False
        )
        self.dns_name = f"{file_system_id}.fsx.{stack.region}.{stack.url_suffix}"
        self.mount_name = mount_name


def _ports() -> Iterator[ec2.Port]:
    for first, last in facts()["fsx_lustre_network"]["tcp_ports"]:
        yield ec2.Port.tcp(first) if first == last else ec2.Port.tcp_range(first, last)
