"""The subnet of the nodes, chosen during the deployment if several are selected, and checked if nodes are reserved."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Annotations, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import refuse
from trainium_cdk.fleet.capacity import Capacity
from trainium_cdk.fleet.node_type import checked_type
from trainium_cdk.network.subnet_routes import ReachesS3
from trainium_cdk.network.subnet_selection import candidate_subnets
from trainium_cdk.provider import provider
from trainium_core.catalog.catalog import Catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_runtime.handlers.node_subnet import RESOURCE_TYPE

_TIMEOUT_MINUTES = 5


class NeuronSubnet(Construct):
    """A subnet of a VPC whose zone offers an instance type. `subnet` is the CDK object.

    The catalogue has the IDs of the zones that offer a type, but an app has only zone names, whose meaning depends on
    the account. Therefore the deployment chooses among several subnets: it takes the first one in a zone that offers
    the type, in the zone of a reservation if the capacity has one, and keeps it. If no subnet is in such a zone, the
    deployment fails and lists these zones. A single subnet is checked in this way only if the capacity has a
    reservation. `candidates` are all selected subnets.

    Example:

        place = NeuronSubnet(stack, "Place", vpc=vpc, instance_type=ec2.InstanceType("trn1.32xlarge"))
        lustre = LustreFileSystem(stack, "Lustre", vpc=vpc, subnet=place.subnet, size=Size.gibibytes(1200))
    """

    candidates: Sequence[ec2.ISubnet]
    subnet: ec2.ISubnet

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        instance_type: ec2.InstanceType,
        vpc_subnets: ec2.SubnetSelection | None = None,
        capacity: Capacity | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        Args:
            vpc: VPC of the subnets.
            instance_type: Instance type that the subnet's zone must offer.
            vpc_subnets: The subnets to choose from. Default: the private subnets with egress; without any, the isolated
                subnets; without these, the public subnets.
            capacity: The purchase option, whose reservation determines the zone. Default: Capacity.on_demand().
            catalog: Instance types, including your own. Default: the built-in catalogue.

        Raises:
            PropsError: No subnet of the VPC is selected, zones are selected by ID, the VPC is in another region or has
                no DNS support, the type is unknown or not offered in the region, or the zone of a ClusterNetwork does
                not offer it. If all selected subnets are public or isolated, the synthesis fails unless the VPC has
                an endpoint for S3, or one of the isolated subnets a default route.
        """
        super().__init__(scope, construct_id)
        kind = checked_type(self, instance_type, catalog)
        self.candidates = candidates = candidate_subnets(self, vpc, vpc_subnets)
        self._check_zones(candidates, kind)
        self.node.add_validation(ReachesS3(vpc, candidates))
        self.subnet = candidates[0]
        if len(candidates) == 1 and not (capacity and capacity.reservation_id):
            return
        chosen = self._chosen([subnet.subnet_id for subnet in candidates], kind.name, capacity)
        if len(candidates) == 1:
            return
        self.subnet = ec2.Subnet.from_subnet_attributes(self, "Subnet", subnet_id=chosen)
        known_later = "the route table of a subnet that the deployment chooses is not used"
        Annotations.of(self.subnet).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId", known_later)

    def _check_zones(self, candidates: Sequence[ec2.ISubnet], kind: InstanceType) -> None:
        offering = kind.zones.get(Stack.of(self).region)
        resources = [subnet.node.default_child for subnet in candidates]
        zones = [child.availability_zone_id if isinstance(child, ec2.CfnSubnet) else None for child in resources]
        if not offering or None in zones or set(zones) & set(offering):
            return
        allowed = f"a subnet in a zone that offers {kind.name}: {', '.join(offering)}"
        got = ", ".join(f"{subnet.node.path} in {zone}" for subnet, zone in zip(candidates, zones, strict=True))
        raise refuse(self, "vpc_subnets", got, allowed=allowed, fix="pass one of these to the network as zone_id")

    def _chosen(self, subnet_ids: Sequence[str], instance_type: str, capacity: Capacity | None) -> str:
        function = provider(Stack.of(self))
        properties: dict[str, Any] = {"SubnetIds": list(subnet_ids), "InstanceType": instance_type}
        if capacity and capacity.reservation_id:
            function.allow_reading(["ec2:DescribeCapacityReservations"])
            properties["ReservationId"] = capacity.reservation_id
        function.allow_reading(["ec2:DescribeInstanceTypeOfferings", "ec2:DescribeSubnets"])
        choice = function.custom_resource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            timeout_minutes=_TIMEOUT_MINUTES,
            properties=properties,
        )
        return choice.get_att_string("SubnetId")
