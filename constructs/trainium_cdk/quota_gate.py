"""The gate a deployment passes only with room in the quota."""

from aws_cdk import CustomResource, Duration
from constructs import Construct

from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_core.plan import Plan
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


class QuotaGate(Construct):
    """Asks for the EC2 quota before anything that depends on this is made, and fails the deployment without room.

    The reason is what `trn preflight` prints. An update is asked about only when it needs more than before. A quota
    that is unknown fails the deployment as well: leave the gate out to go on regardless. For a plan that counts
    against no known quota, as in a Capacity Block or a reservation, it makes nothing.
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """plan: whose vCPUs are asked for."""
        super().__init__(scope, construct_id)
        need = quota_need(plan)
        if need is None:
            return
        function = HandlerFunction(self, "Asker", handler="quota_gate", timeout_minutes=_ASKING_MINUTES)
        function.allow(actions=_ACTIONS, resources=["*"])
        function.allow_asking_for_rollbacks()
        justify_wildcard(function, "*", "these read-only actions know no resources (Service Authorization Reference)")
        gate = CustomResource(
            self,
            "Gate",
            resource_type="Custom::TrnQuotaGate",
            service_token=function.arn,
            service_timeout=Duration.minutes(_ASKING_MINUTES + 1),
            properties=need.to_properties(),
        )
        gate.node.add_dependency(function)
