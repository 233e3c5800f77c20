"""The gate a deployment passes only with room in the quota."""

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.capacity import Capacity
from trainium_cdk.fleet_plan import node_settings, plan_of
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_core.catalog.catalog import Catalog
from trainium_core.plan import Plan
from trainium_core.plan.values import PlanValues
from trainium_core.quotas.ec2 import quota_need

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


class PlannedQuotaGate(Construct):
    """The gate of a plan. For a plan that counts against no known quota, it makes nothing."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id)
        self._make(plan)

    def _make(self, plan: Plan) -> None:
        need = quota_need(plan)
        if need is None:
            return
        function = HandlerFunction(self, "Asker", handler="quota_check", timeout_minutes=_ASKING_MINUTES)
        function.allow(actions=_ACTIONS, resources=["*"])
        function.allow_describing_its_stack()
        justify_wildcard(function, "*", "these read-only actions know no resources (Service Authorization Reference)")
        gate = CustomResource(
            self,
            "Gate",
            resource_type="Custom::TrnQuotaGate",
            service_token=function.arn,
            service_timeout=Duration.minutes(_ASKING_MINUTES + 1),
            properties={**need.to_properties(), "Region": Stack.of(self).region},
        )
        gate.node.add_dependency(function)


class QuotaGate(PlannedQuotaGate):
    """Asks for the EC2 quota before anything that depends on this is made, and fails the deployment without room.

    The reason is what `trn preflight` prints. An update is asked about only when it needs more than before. A quota
    that is unknown fails the deployment as well: leave the gate out to go on regardless. For capacity that counts
    against no known quota, as a Capacity Block or a reservation, it makes nothing.

    Example:

        gate = QuotaGate(stack, "Quota", instance_type=ec2.InstanceType("trn1.32xlarge"), nodes=2)
        group.node.add_dependency(gate)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instance_type: ec2.InstanceType,
        nodes: int = PlanValues.nodes,
        capacity: Capacity | None = None,
        cluster_name: str | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """
        instance_type: type of every instance, one that the region of the stack offers.
        nodes: number of instances whose vCPUs are asked for. Default: 1.
        capacity: how they are bought. Default: Capacity.on_demand().
        cluster_name: value of the tag trn:cluster on instances that an update replaces. Default: trn-pilot.
        catalog: instance types with your own. Default: the built-in catalogue.

        Raises PropsError with everything that is wrong, by the names of these parameters.
        """
        Construct.__init__(self, scope, construct_id)
        settings = node_settings(
            self,
            instance_type=instance_type,
            nodes=nodes,
            capacity=capacity,
            cluster_name=cluster_name,
            catalog=catalog,
        )
        # Where the instances are is the user's own business.
        self._make(plan_of(self, {**settings, "secondary_interface_type": "efa-only"}, {"capacity": capacity}))
