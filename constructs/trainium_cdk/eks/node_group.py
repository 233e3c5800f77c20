"""A managed node group of Trainium nodes, for any EKS cluster."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import jsii
from aws_cdk import Resource, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.checks import check, check_known, form, is_token, refuse
from trainium_cdk.eks.eks_cluster import EksCluster, check_cluster, cluster_network, has_ipv6_pods, let_nodes_join
from trainium_cdk.eks.node_verification import NodeVerification, let_guard_end_nodes, verified_user_data
from trainium_cdk.fleet.capacity import Capacity, checked_capacity, warn_if_reservation_is_shared
from trainium_cdk.fleet.cluster_names import checked_cluster_name, first_owner, tag_all
from trainium_cdk.fleet.launch_template import LaunchTemplateProps, NodeLaunchTemplate
from trainium_cdk.fleet.node_checks import NodeChecks
from trainium_cdk.fleet.node_image import known_placement_group_name, new_placement_group
from trainium_cdk.fleet.node_type import check_secondary_interfaces, checked_type
from trainium_cdk.fleet.node_volumes import allow_auto_scaling, checked_root_volume
from trainium_cdk.fleet.quota_check import QuotaCheck
from trainium_cdk.grants import granting
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.network.known_subnet import check_addresses
from trainium_cdk.network.node_subnet import NeuronSubnet
from trainium_cdk.network.security_group import EfaSecurityGroup, check_groups
from trainium_cdk.service_role import allow, service_role
from trainium_cdk.storage.encryption_key import check_key
from trainium_core.catalog.catalog import Catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.plan.node_settings import NodeSettings
from trainium_core.plan.rules.nodes import block_nodes, block_placement
from trainium_core.plan.settings.network import CardInterfaceType
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem
from trainium_runtime.naming import RECORDS_TAG
from trainium_userdata.eks import VERIFY_LABEL
from trainium_wire.kubernetes import CLUSTER_LABEL, NEURON

_AMI_TYPE, _ROOT_DEVICE = "AL2023_x86_64_NEURON", "/dev/xvda"
_CAPACITY_TYPES = {
    "on-demand": "ON_DEMAND",
    "spot": "SPOT",
    "capacity-block": "CAPACITY_BLOCK",
    "reservation": "ON_DEMAND",
}
_TAINT = {"key": NEURON, "value": "true", "effect": "NO_SCHEDULE"}
_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy")
_IPV6_ACTIONS = ("ec2:AssignIpv6Addresses", "ec2:UnassignIpv6Addresses")
"""What the VPC CNI needs in addition for IPv6, as in the node groups of aws_eks."""
_NAME = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"(?=.{1,253}/)[a-z0-9]([a-z0-9.-]*[a-z0-9])?/"
_RESERVED = ("kubernetes.io", "k8s.io", "eks.amazonaws.com", "trn")
"""Prefixes of labels that kubelet, EKS or this package sets. kubelet does not start with most labels of Kubernetes."""


@jsii.implements(ec2.IConnectable)
class NeuronNodeGroup(Resource):
    """A managed node group of Trainium nodes in one subnet, for any EKS cluster.

    Nodes run the EKS-optimized AL2023 image for Neuron, with an EFA interface on each network card that has one. Pods
    must tolerate the taint `aws.amazon.com/neuron=true:NoSchedule`, and can select the label `trn/cluster`. With a
    NodeVerification, pods run only on nodes that have passed it. EKS repairs unhealthy nodes. The device plugin or DRA
    driver of Neuron is not installed. A cluster of another app is imported:

    Example:

        existing = eks.Cluster.from_cluster_attributes(
            stack, "Existing", cluster_name="prod", vpc=vpc, cluster_security_group_id="sg-0123456789abcdef0"
        )
        group = NeuronNodeGroup(
            stack, "Group", cluster=existing, instance_type=ec2.InstanceType("trn1.32xlarge"), nodes=2
        )
        group.connections.allow_from(app, ec2.Port.tcp(8080))
        group.grant_scale(operator)

    `role` is the role of the nodes; for pods, create a PodRole. `security_group` is the group for EFA, and
    `launch_template` and `subnet` are CDK objects. `node.default_child` is the `eks.CfnNodegroup`. Another version of
    the launch template, for example because of another tag of the app, replaces the nodes one by one.
    """

    role: iam.IRole
    security_group: EfaSecurityGroup
    subnet: ec2.ISubnet

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: EksCluster,
        instance_type: ec2.InstanceType,
        nodes: int = PlanValues.nodes,
        desired_nodes: int | None = None,
        cluster_name: str | None = None,
        capacity: Capacity | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        placement_group: ec2.IPlacementGroup | None = None,
        secondary_interface_type: CardInterfaceType | None = None,
        root_volume_size: Size | None = None,
        root_volume_throughput: int | None = None,
        root_volume_initialization_rate: int | None = None,
        block_devices: Sequence[ec2.BlockDevice] = (),
        volume_key: Key | None = None,
        labels: Mapping[str, str] | None = None,
        node_verification: NodeVerification | None = None,
        quota_check: bool = True,
        catalog: Catalog | None = None,
    ) -> None:
        """
        Args:
            cluster: The EKS cluster: `ICluster` of `aws_eks` or `aws_eks_v2`, of this app or imported with its VPC and
                its cluster security group.
            instance_type: Type of every node. It must be offered in the region of the stack.
            nodes: Maximum number of nodes; the minimum is 0. Default: 1.
            desired_nodes: Number of nodes that the deployment launches. An update of the group sets it again. Default:
                `nodes`; 0 for a Capacity Block, because EKS launches nodes only after its start.
            cluster_name: Value of the tag trn:cluster and of the label trn/cluster, not the name of the EKS cluster: 1
                to 32 lower-case letters, digits and single hyphens, a letter first and no hyphen last. Default: derived
                from the construct's path.
            capacity: The purchase option. Default: Capacity.on_demand().
            vpc_subnets: The subnet of the nodes, in the VPC of the EKS cluster. If several are selected, the deployment
                chooses one in a zone that offers the type, and in that of a reservation, because EFA does not cross
                zones. It fails if a single subnet is not in the zone of the reservation. Default: the private subnets
                with egress; without any, the isolated subnets; without these, the public subnets.
            security_groups: Security groups in addition to the EKS cluster's and the group's own EfaSecurityGroup.
                Default: none.
            placement_group: An existing cluster placement group. Default: a new one for On-Demand and Spot Instances
                with EFA.
            secondary_interface_type: Interface type of all network cards but the first. Of the addresses of an efa
                interface, the VPC CNI reserves many for pods. Default: efa-only, which needs no address, and version
                1.18.5 or later of the VPC CNI.
            root_volume_size: Size of the gp3 root volume, which also holds container images. Default: 512 GiB.
            root_volume_throughput: Throughput of the root volume, in MiB/s. Default: 500.
            root_volume_initialization_rate: Rate in MiB/s at which EBS loads the image into a new root volume, billed
                per GiB. Default: without a guaranteed rate.
            block_devices: Additional volumes, encrypted unless `encrypted` is False. Default: none.
            volume_key: KMS key of the volumes. The policy of an imported key must allow Auto Scaling to use it.
                Default: the account's default key for EBS.
            labels: Further Kubernetes labels of the nodes. Default: none.
            node_verification: The verification that nodes pass before pods run on them. Default: pods run on new nodes
                without any test.
            quota_check: Whether the deployment checks the EC2 quota for `nodes`. Default: True.
            catalog: Instance types, including your own. Default: the built-in catalogue.

        Raises:
            PropsError: A parameter is invalid, the EKS cluster is in another account or region, or it is imported
                without its VPC or its cluster security group.
        """
        super().__init__(scope, construct_id)
        check_cluster(self, cluster)
        vpc, cluster_group = cluster_network(self, cluster)
        kind = _checked_kind(self, instance_type, catalog)
        capacity = checked_capacity(self, capacity, kind, catalog)
        name = _claimed_name(self, cluster_name)
        desired = _checked_desired(self, nodes, desired_nodes, capacity)
        placement = known_placement_group_name(self, placement_group)
        checks = node_verification.checks if node_verification else NodeChecks.enforce()
        node = NodeSettings(
            cluster_name=name,
            type=kind,
            secondary_interface_type=secondary_interface_type or "efa-only",
            verification=checks.verification,
            suppress_checks=checks.suppress,
        )
        check(self, block_placement(placement, capacity.kind, field="placement_group"), _label_problems(labels or {}))
        check_secondary_interfaces(self, secondary_interface_type, node)
        check_key(self, "volume_key", volume_key)
        check_groups(self, [cluster_group, *security_groups], vpc=vpc)
        warn_if_reservation_is_shared(self, capacity)
        tag_all(self, name, {})
        place = NeuronSubnet(
            self,
            "Subnet",
            vpc=vpc,
            vpc_subnets=vpc_subnets,
            capacity=capacity,
            instance_type=instance_type,
            catalog=catalog,
        )
        check_addresses(self, node, nodes, place.candidates)
        self.subnet = place.subnet
        self.security_group = EfaSecurityGroup(self, "SecurityGroup", vpc=vpc)
        self._connections = ec2.Connections(security_groups=[self.security_group])
        self.role = _node_role(self)
        let_nodes_join(self, cluster, self.role)
        if has_ipv6_pods(cluster):
            interfaces = Stack.of(self).format_arn(service="ec2", resource="network-interface", resource_name="*")
            allow(self.role, _IPV6_ACTIONS, [interfaces])
            justify_wildcard(self.role, interfaces, "the nodes' interfaces, whose IDs are not known at synthesis")
        if volume_key is not None:
            allow_auto_scaling(self, volume_key)
        user_data = ""
        if node_verification:
            user_data = verified_user_data(self, node_verification, node=node, role=self.role)
        self._launch_template = NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            props=LaunchTemplateProps(
                node=node,
                capacity=capacity,
                # Spot is a property of the node group: EKS refuses it in a launch template.
                market_type="capacity-block" if capacity.kind == "capacity-block" else None,
                root_volume=checked_root_volume(
                    self,
                    size=root_volume_size,
                    throughput=root_volume_throughput,
                    initialization_rate=root_volume_initialization_rate,
                    device_name=_ROOT_DEVICE,
                ),
                security_groups=[cluster_group, self.security_group, *security_groups],
                placement_group_name=placement or new_placement_group(self, node, capacity),
                user_data=user_data,
                volume_key=volume_key,
                block_devices=block_devices,
                tags={RECORDS_TAG: node_verification.bucket.bucket_name} if node_verification else {},
            ),
        )
        self._group = eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            node_role=self.role.role_arn,
            subnets=[self.subnet.subnet_id],
            ami_type=_AMI_TYPE,
            capacity_type=_CAPACITY_TYPES[capacity.kind],
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(min_size=0, max_size=nodes, desired_size=desired),
            launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
                id=self._launch_template.launch_template_id, version=self._launch_template.version_number
            ),
            labels={
                **(labels or {}),
                CLUSTER_LABEL: name,
                **({VERIFY_LABEL: "true"} if node_verification else {}),
            },
            taints=[eks.CfnNodegroup.TaintProperty(**_TAINT)],
            # The default strategy launches nodes before it terminates others, which reserved capacity cannot provide.
            update_config=eks.CfnNodegroup.UpdateConfigProperty(update_strategy="MINIMAL", max_unavailable=1),
            node_repair_config=eks.CfnNodegroup.NodeRepairConfigProperty(enabled=True),
        )
        # A node of a group that is being deleted may still write its record.
        used = [node_verification] if node_verification else []
        self._group.node.add_dependency(self.role, self.security_group, place, vpc, *used)
        if node_verification:
            let_guard_end_nodes(
                self, node_verification, cluster_name=cluster.cluster_name, nodegroup_name=self.nodegroup_name
            )
        if quota_check:
            quota = QuotaCheck(
                self,
                "QuotaCheck",
                instance_type=instance_type,
                nodes=nodes,
                capacity=capacity,
                cluster_name=name,
                catalog=catalog,
            )
            self._group.node.add_dependency(quota)

    @property
    def nodegroup_name(self) -> str:
        """Name of the node group, which EKS also sets as the label `eks.amazonaws.com/nodegroup` of its nodes."""
        return self._group.attr_nodegroup_name

    @property
    def nodegroup_arn(self) -> str:
        """ARN of the node group."""
        return self._group.attr_arn

    @property
    def launch_template(self) -> ec2.ILaunchTemplate:
        """The launch template of the nodes."""
        return cast(ec2.ILaunchTemplate, self._launch_template)

    @property
    def connections(self) -> ec2.Connections:
        """The nodes' EFA security group: `group.connections.allow_from(other, ec2.Port.tcp(8080))` opens a port."""
        return self._connections

    def grant_scale(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant permission to read the node group and to change its number of nodes.

        `aws eks update-nodegroup-config` changes it, for example to 0 before a Capacity Block ends. The action covers
        the labels, taints and update settings of the group too.

        Args:
            grantee: A principal, such as the role of a scheduler.

        Raises:
            PropsError: The CDK cannot grant permissions to the grantee.
        """
        with granting(self, grantee):
            return iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["eks:DescribeNodegroup", "eks:UpdateNodegroupConfig"],
                resource_arns=[self.nodegroup_arn],
            )


def _checked_kind(construct: Construct, instance_type: ec2.InstanceType, catalog: Catalog | None) -> InstanceType:
    kind = checked_type(construct, instance_type, catalog)
    if kind.is_gpu:
        allowed = "a Trainium type, because the image of the nodes has no software for GPUs"
        fix = "use a node group of aws_eks for types with GPUs"
        raise refuse(construct, "instance_type", kind.name, allowed=allowed, fix=fix)
    return kind


def _claimed_name(construct: Construct, cluster_name: str | None) -> str:
    """The name of the group's nodes. Raises PropsError if another node group of the app has it.

    The quota check does not count instances with the name as used.
    """
    name = checked_cluster_name(construct, cluster_name)
    other = first_owner(construct, "NeuronNodeGroup", name)
    if other != construct.node.path:
        allowed, fix = f"another name than that of {other}", "set a different cluster_name for each group"
        raise refuse(construct, "cluster_name", name, allowed=allowed, fix=fix)
    return name


def _checked_desired(construct: Construct, nodes: int, desired: int | None, capacity: Capacity) -> int:
    check_known(construct, "nodes", nodes, why="it is compared with quota and subnet")
    check_known(construct, "desired_nodes", desired, why="it is compared with nodes")
    check(construct, [*form("nodes", nodes)] or block_nodes(nodes, capacity.kind, field="nodes"))
    if desired is None:
        return 0 if capacity.kind == "capacity-block" else nodes
    if not 0 <= desired <= nodes:
        allowed, fix = f"0 to {nodes}, the value of nodes", "choose a number in this range, or more nodes"
        raise refuse(construct, "desired_nodes", desired, allowed=allowed, fix=fix)
    return desired


def _label_problems(labels: Mapping[str, str]) -> Iterator[Problem]:
    """The problems of labels with which Kubernetes or EKS would refuse the nodes."""
    for key, value in labels.items():
        prefix, _, _ = key.rpartition("/")
        if any(prefix == reserved or prefix.endswith(f".{reserved}") for reserved in _RESERVED):
            allowed = f"keys without the prefixes {', '.join(_RESERVED)}"
            yield Problem(key="labels", got=key, allowed=allowed, fix="choose your own prefix, such as example.com/")
        elif not re.fullmatch(f"({_PREFIX})?{_NAME}", key):
            allowed = "up to 63 letters, digits, and -_. between them, after an optional prefix: a DNS name and /"
            yield Problem(key="labels", got=key, allowed=allowed, fix="change the key")
        elif not is_token(value) and not re.fullmatch(f"({_NAME})?", str(value)):
            allowed = "a value of up to 63 letters, digits, and -_. between them"
            yield Problem(key="labels", got=f"{key}={value}", allowed=allowed, fix="change the value")


def _node_role(construct: Construct) -> iam.IRole:
    """A role with the AWS managed policies that EKS requires of nodes (Amazon EKS User Guide, node IAM role)."""
    role = service_role(construct, "Role", "ec2.amazonaws.com")
    for policy in _POLICIES:
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
    why = "the policies that Amazon EKS documents for the role of nodes"
    justify(role, cdk_nag={f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]": why for name in _POLICIES})
    return role
