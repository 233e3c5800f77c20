"""The gate a deployment passes only with every node proven."""

from aws_cdk import CustomResource, Duration
from constructs import Construct

from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.node_records import NodeRecords


class FleetGate(Construct):
    """Waits at every deployment until each node of an Auto Scaling group has written that it is proven.

    Fails the deployment with the sentence of the node that is not, with the launch failure that will not mend, or after
    the time-out. Not a wait condition: that cannot be updated when the number of nodes changes. Not SignalResource:
    that carries no reason, and needs a paid endpoint in a closed network.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        group_name: str,
        nodes: int,
        launch_template_version: str,
        records: NodeRecords,
        timeout_minutes: int,
    ) -> None:
        """
        group_name, nodes: the Auto Scaling group, and how many instances it is to have.
        launch_template_version: what the instances are launched from; a new one means new instances to wait for.
        timeout_minutes: how long to wait, up to 55.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Watcher", handler="fleet_gate", timeout_minutes=15)
        function.allow(
            actions=["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"], resources=["*"]
        )
        justify_wildcard(function, "*", "these read-only actions know no resources (Service Authorization Reference)")
        bucket = records.bucket
        function.allow(actions=["s3:ListBucket"], resources=[bucket.bucket_arn])
        objects = bucket.arn_for_objects(f"{records.prefix}/*")
        function.allow(actions=["s3:GetObject"], resources=[objects])
        justify_wildcard(function, objects, "one record for each instance, whose ids are not known before")
        function.allow_calling_itself()
        gate = CustomResource(
            self,
            "Gate",
            resource_type="Custom::TrnFleetGate",
            service_token=function.arn,
            service_timeout=Duration.minutes(timeout_minutes + 5),
            properties={
                "GroupName": group_name,
                "Nodes": nodes,
                "LaunchTemplateVersion": launch_template_version,
                "RecordsBucket": bucket.bucket_name,
                "RecordsPrefix": records.prefix,
                "TimeoutMinutes": timeout_minutes,
            },
        )
        gate.node.add_dependency(function)
        self.summary = gate.get_att_string("Summary")
