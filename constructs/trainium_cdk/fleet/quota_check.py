"""What a deployment passes only with room in the quota."""

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import check, check_known, form
from trainium_cdk.fleet.capacity import Capacity, checked_capacity
from trainium_cdk.fleet.node_type import checked_type
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_core.catalog.catalog import Catalog
from trainium_core.naming import DEFAULT_CLUSTER_NAME
from trainium_core.plan.values import PlanValues
from trainium_core.quotas.ec2 import instances_quota_need

_ASKING_MINUTES = 2

# What trainium_runtime.aws_quotas asks, all of it read-only.
_ACTIONS = [
    "cloudwatch:GetMetricStatistics",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota",
]


class QuotaCheck(Construct):
    """Asks for the EC2 quota before anything that depends on this is made, and fails the deployment without room.

    The reason is what `trn preflight` prints. An update is asked about only when it needs more than before. A quota
    that is unknown fails the deployment as well: leave the check out to deploy regardless. For capacity that counts
    against no known quota, as a Capacity Block or a reservation, it makes nothing.

    Example:

        quota = QuotaCheck(stack, "Quota", instance_type=ec2.InstanceType("trn1.32xlarge"), nodes=2)
        group.node.add_dependency(quota)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instance_type: ec2.InstanceType,
        nodes: int = PlanValues.nodes,
        capacity: Capacity | None = None,
        cluster_name: str = DEFAULT_CLUSTER_NAME,
        catalog: Catalog | None = None,
    ) -> None:
        """
        instance_type: type of every instance, one that the region of the stack offers.
        nodes: number of instances whose vCPUs are asked for. Default: 1.
        capacity: how they are bought. Default: Capacity.on_demand().
        cluster_name: value of the tag trn:cluster on instances that an update replaces. Default: trn-pilot.
        catalog: instance types with your own. Default: the built-in catalogue.

        Raises PropsError with what is wrong, by the names of these parameters.
        """
        super().__init__(scope, construct_id)
        kind = checked_type(self, instance_type, catalog)
        bought = checked_capacity(self, capacity, kind, catalog)
        check_known(self, "nodes", nodes, why="it is compared with the quota")
        check(self, form("nodes", nodes))
        region = Stack.of(self).region
        need = instances_quota_need(kind, nodes, bought.kind, region=region, cluster_name=cluster_name)
        if need is None:
            return
        function = HandlerFunction(self, "Asker", handler="quota_check", timeout_minutes=_ASKING_MINUTES)
        function.allow(actions=_ACTIONS, resources=["*"])
        function.allow_describing_its_stack()
        read_only = "these read-only actions do not support resources (Service Authorization Reference)"
        justify_wildcard(function, "*", read_only)
        function.custom_resource(
            self,
            "Gate",
            resource_type="Custom::TrnQuotaGate",
            timeout_minutes=_ASKING_MINUTES + 1,
            properties={**need.to_properties(), "Region": region},
        )
