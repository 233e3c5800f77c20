"""EFS: an elastic shared file system, for home folders and code."""

from dataclasses import replace

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from constructs import Construct

from trainium_cdk.cdk_types import Subnet
from trainium_cdk.checks import check, check_removal_policy, form, refuse
from trainium_cdk.justification import justify
from trainium_cdk.network.subnet_selection import check_subnet
from trainium_cdk.storage.node_file_system import (
    NodeFileSystem,
    check_file_system_id,
    keep_when_replaced,
)
from trainium_core.facts import facts
from trainium_core.plan.node_settings import Mount
from trainium_userdata.locations import NodeLocations


class ElasticFileSystem(NodeFileSystem):
    """An EFS file system with a mount target in the nodes' subnet. A new one is encrypted, with elastic throughput.

    Nodes mount it over NFS without TLS, which would need software that the images lack; the security group restricts
    access to the nodes. `dns_name` is its address, `security_group` the CDK object.

    Example:

        homes = ElasticFileSystem(stack, "Homes", vpc=vpc, subnet=vpc.private_subnets[0])
        existing = ElasticFileSystem.from_elastic_file_system_attributes(
            stack, "Existing", file_system_id="fs-0123456789abcdef0", security_group_id="sg-0123456789abcdef0"
        )
    """

    kind: Mount = "efs"

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: Subnet,
        file_system_id: str | None = None,
        removal_policy: RemovalPolicy | None = None,
    ) -> None:
        """
        Args:
            vpc: VPC of the nodes.
            subnet: Subnet of the nodes and of the mount target.
            file_system_id: An existing file system, without a mount target in another VPC or in the subnet's zone.
                Default: a new one.
            removal_policy: RETAIN keeps a new file system when the stack is deleted, without its mount target. A file
                system that an update replaces is always kept. Default: DESTROY.

        Raises:
            PropsError: The ID is invalid, `removal_policy` is SNAPSHOT or given with an ID, or the subnet is in another
                VPC.
        """
        super().__init__(scope, construct_id)
        check_subnet(self, vpc, subnet)
        check_removal_policy(self, removal_policy)
        self.subnet = subnet
        if file_system_id is not None:
            check_file_system_id(self, file_system_id)
            if removal_policy is not None:
                fix = "remove it: an existing file system is never deleted"
                raise refuse(
                    self, "removal_policy", removal_policy, allowed="nothing together with file_system_id", fix=fix
                )
        file_system_id = file_system_id or self._new_file_system(removal_policy or RemovalPolicy.DESTROY)
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="EFS: its nodes only"
        )
        efs.CfnMountTarget(
            self,
            "MountTarget",
            file_system_id=file_system_id,
            subnet_id=subnet.subnet_id,
            security_groups=[self.security_group.security_group_id],
        )
        self.dns_name: str = _dns_name(self, file_system_id)

    def _new_file_system(self, removal_policy: RemovalPolicy) -> str:
        file_system = efs.CfnFileSystem(
            self,
            "FileSystem",
            encrypted=True,
            performance_mode="generalPurpose",
            throughput_mode="elastic",
            backup_policy=efs.CfnFileSystem.BackupPolicyProperty(status="DISABLED"),
        )
        keep_when_replaced(file_system, removal_policy)
        own_key = "encrypted with the AWS managed key for EFS; a customer managed key is billed and outlives a delete"
        justify(file_system, checkov={"CKV_AWS_184": own_key})
        return file_system.attr_file_system_id

    @staticmethod
    def from_elastic_file_system_attributes(
        scope: Construct, construct_id: str, *, file_system_id: str, security_group_id: str
    ) -> "ElasticFileSystem":
        """Import a file system with a mount target in the nodes' zone. Only a rule is added to its security group.

        Args:
            file_system_id: ID of the file system, such as fs-0123456789abcdef0.
            security_group_id: A security group of the mount target, to which a rule for the nodes is added.

        Raises:
            PropsError: An ID is invalid.
        """
        return _ImportedEfs(scope, construct_id, file_system_id=file_system_id, security_group_id=security_group_id)

    def allow(self, nodes: ec2.ISecurityGroup) -> None:
        """Open NFS from the nodes to the mount target, by rules in the nodes' stack.

        Args:
            nodes: Security group of the nodes.
        """
        nfs = ec2.Port.tcp(facts()["efs"]["tcp_port"])
        nodes.connections.allow_to(self.security_group, nfs, "NFS from the nodes")

    def added_to(self, locations: NodeLocations) -> NodeLocations:
        """The locations with this file system added.

        Args:
            locations: Locations of the nodes' user data.
        """
        return replace(locations, efs_dns=self.dns_name)


class _ImportedEfs(ElasticFileSystem):
    def __init__(self, scope: Construct, construct_id: str, *, file_system_id: str, security_group_id: str) -> None:
        Construct.__init__(self, scope, construct_id)
        check_file_system_id(self, file_system_id)
        check(self, form("efs_security_group", security_group_id, field="security_group_id"))
        self.subnet = None
        self.security_group = ec2.SecurityGroup.from_security_group_id(self, "SecurityGroup", security_group_id)
        self.dns_name: str = _dns_name(self, file_system_id)


def _dns_name(scope: Construct, file_system_id: str) -> str:
    stack = Stack.of(scope)
    return f"{file_system_id}.efs.{stack.region}.{stack.url_suffix}"
