"""The quota check: fails a deployment that exceeds the EC2 quota."""

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import check, check_known, form
from trainium_cdk.fleet.capacity import Capacity, checked_capacity
from trainium_cdk.fleet.node_type import checked_type
from trainium_cdk.provider import provider
from trainium_core.catalog.catalog import Catalog
from trainium_core.naming import DEFAULT_CLUSTER_NAME
from trainium_core.plan.values import PlanValues
from trainium_core.quotas.ec2 import instances_quota_need
from trainium_runtime.handlers.quota_check import RESOURCE_TYPE

_TIMEOUT_MINUTES = 3

# The read-only actions of trainium_runtime.aws_quotas.
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
    """Checks the EC2 quota before its dependents are created, and fails the deployment if the quota is exceeded.

    The reason of the failure is the message of `trn preflight`. An update is checked only if it needs more than before.
    An unknown quota fails the deployment too: remove the check to deploy regardless. For capacity that does not
    count against a known quota, such as a Capacity Block or a reservation, the check creates no resources.

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
        Args:
            instance_type: Type of every instance, one that the region of the stack offers.
            nodes: Number of instances. Default: 1.
            capacity: The purchase option. Default: Capacity.on_demand().
            cluster_name: Value of the tag trn:cluster of the stack's own instances, which an update replaces and the
                check does not count as used. Default: trn-pilot.
            catalog: Instance types, including your own. Default: the built-in catalogue.

        Raises:
            PropsError: A parameter is invalid.
        """
        super().__init__(scope, construct_id)
        kind = checked_type(self, instance_type, catalog)
        purchase_option = checked_capacity(self, capacity, kind, catalog)
        check_known(self, "nodes", nodes, why="it is compared with the quota")
        check(self, form("nodes", nodes), form("cluster_name", cluster_name))
        stack = Stack.of(self)
        region = stack.region
        need = instances_quota_need(kind, nodes, purchase_option.kind, region=region, cluster_name=cluster_name)
        if need is None:
            return
        function = provider(stack)
        function.allow_reading(_ACTIONS)
        function.allow_describing_its_stack()
        function.custom_resource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            timeout_minutes=_TIMEOUT_MINUTES,
            properties={**need.to_properties(), "Region": region},
        )
