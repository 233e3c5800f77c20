"""What a deployment passes only with every node proven."""

import json

from constructs import Construct

from trainium_cdk.fleet.group_arn import allow_resizing
from trainium_cdk.fleet.node_reconciler import NodeReconciler, allow_on_nodes
from trainium_cdk.fleet.node_records import NodeRecords, allow_reading_records
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.pilot.pilot_clock import PilotClock


class FleetReadiness(Construct):
    """Sets the size of an Auto Scaling group, and waits until each of its nodes is proven and has reached all others.

    It alone replaces nodes: CloudFormation updates the group in place. Nodes of another version of the launch template,
    or in another subnet, are terminated before others are launched.
    So nodes come after all that they need and all that looks after them, and are gone before any of it is deleted.
    A failed node that the reconciler replaces is waited for. Fails the deployment with the sentence of one that is not
    replaced, with the launch failure that will not mend, or after the time-out; a rollback never. Not a wait condition:
    that cannot be updated when the number of nodes changes. Not SignalResource: that carries no reason, and needs a
    paid endpoint in a closed network.
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
        group_name, nodes: the Auto Scaling group, and how many instances it is to have, as text.
        launch_template_id, launch_template_version: what instances are to be launched from; the version as text.
        subnet_id: where they are to be. Instances of another template, version or subnet are replaced.
        records: where the nodes report to.
        reconciler: replaces failed nodes and writes the membership.
        cluster_name: what the instances are tagged with, as trn:cluster.
        timeout_minutes: how long to wait, up to 55.
        clock: who says how many of the nodes there are to be at the time. Default: all of them.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Watcher", handler="fleet_readiness", timeout_minutes=15)
        actions = ["DescribeAutoScalingGroups", "DescribeScalingActivities"]
        function.allow(
            actions=[*(f"autoscaling:{action}" for action in actions), "ec2:DescribeInstances"], resources=["*"]
        )
        justify_wildcard(
            function,
            "*",
            "these read-only actions have no resource-level permissions (Service Authorization Reference)",
        )
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
                "Keeper": reconciler.arn,
                "Replacements": reconciler.replacements,
                "TimeoutMinutes": timeout_minutes,
                **({"Clock": clock.arn, "Pilot": json.dumps(clock.settings, sort_keys=True)} if clock else {}),
            },
        )
        gate.node.add_dependency(reconciler, *([clock] if clock else []))
        self.summary = gate.get_att_string("Summary")
