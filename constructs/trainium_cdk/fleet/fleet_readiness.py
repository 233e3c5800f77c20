"""The fleet gate: completes a deployment only after every node is proven."""

import json

from constructs import Construct

from trainium_cdk.fleet.group_arn import allow_resizing
from trainium_cdk.fleet.node_reconciler import NodeReconciler, allow_on_nodes
from trainium_cdk.fleet.node_records import NodeRecords, allow_reading_records
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.pilot.pilot_clock import PilotClock


class FleetReadiness(Construct):
    """Sets the size of an Auto Scaling group, and waits until each node is proven and has reached all others.

    CloudFormation updates the group in place and does not replace nodes. This resource does: it terminates nodes of
    another launch template version or subnet before it launches others. Nodes are launched after every resource that
    they need, and terminated before any of these is deleted. It waits for nodes that the node reconciler replaces. It
    fails the deployment with the reason of a node that is not replaced, with a permanent launch failure, or on a
    timeout. It never fails a rollback.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        group_name: str,
        nodes: str,
        launch_template_id: str,
        launch_template_version: str,
        subnet_id: str,
        records: NodeRecords,
        reconciler: NodeReconciler,
        cluster_name: str,
        timeout_minutes: int,
        clock: PilotClock | None = None,
    ) -> None:
        """
        Args:
            group_name: The Auto Scaling group.
            nodes: Number of its instances, as text.
            launch_template_id: The launch template of the instances.
            launch_template_version: The version of the launch template, as text.
            subnet_id: The subnet of the instances. Instances of another template, version or subnet are replaced.
            records: The nodes' records.
            reconciler: Replaces failed nodes and writes the membership.
            cluster_name: Value of the instances' tag trn:cluster.
            timeout_minutes: How long to wait, up to 55.
            clock: The clock of the pilot, which may require 0 nodes. Default: none; all nodes are launched.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Watcher", handler="fleet_readiness", timeout_minutes=15)
        actions = ("DescribeAutoScalingGroups", "DescribeScalingActivities")
        function.allow_reading([*(f"autoscaling:{action}" for action in actions), "ec2:DescribeInstances"])
        allow_resizing(function, group_name=group_name, cluster_name=cluster_name)
        function.allow_describing_its_stack()
        allow_reading_records(function, records)
        allow_on_nodes(function, actions=["ec2:GetConsoleOutput"], cluster_name=cluster_name)
        called = [reconciler.arn, *([clock.arn] if clock else [])]
        function.allow(actions=["lambda:InvokeFunction"], resources=called)
        function.allow_calling_itself()
        gate = function.custom_resource(
            self,
            "Gate",
            resource_type="Custom::TrnFleetGate",
            timeout_minutes=timeout_minutes + 5,
            properties={
                "GroupName": group_name,
                "Nodes": nodes,
                "LaunchTemplateId": launch_template_id,
                "LaunchTemplateVersion": launch_template_version,
                "SubnetId": subnet_id,
                "RecordsBucket": records.bucket.bucket_name,
                "RecordsPrefix": records.prefix,
                "Reconciler": reconciler.arn,
                "Replacements": reconciler.replacements,
                "TimeoutMinutes": timeout_minutes,
                **({"Clock": clock.arn, "Pilot": json.dumps(clock.settings, sort_keys=True)} if clock else {}),
            },
        )
        gate.node.add_dependency(reconciler, *([clock] if clock else []))
        self.summary = gate.get_att_string("Summary")
