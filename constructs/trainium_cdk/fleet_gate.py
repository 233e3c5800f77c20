"""The gate a deployment passes only with every node proven."""

import json
import re

from aws_cdk import CustomResource, Duration, Token
from constructs import Construct

from trainium_cdk.arguments import check_known, check_object, check_setting, check_type
from trainium_cdk.group_arn import allow_resizing
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.node_keeper import NodeKeeper, allow_on_nodes
from trainium_cdk.node_records import NodeRecords, allow_reading_records
from trainium_cdk.pilot_clock import PilotClock
from trainium_cdk.props_error import refuse


def _is_number(value: object) -> bool:
    return isinstance(value, str) and (Token.is_unresolved(value) or re.fullmatch("[0-9]{1,9}", value) is not None)


class FleetGate(Construct):
    """Sets the size of an Auto Scaling group, and waits until each of its nodes is proven and has reached all others.

    So nodes come after all that they need and all that looks after them, and are gone before any of it is deleted.
    A failed node that the keeper replaces is waited for. Fails the deployment with the sentence of one that is not
    replaced, with the launch failure that will not mend, or after the time-out; a rollback never. Not a wait condition:
    that cannot be updated when the number of nodes changes. Not SignalResource: that carries no reason, and needs a
    paid endpoint in a closed network.

    Example:

        records = NodeRecords(stack, "Records")
        keeper = NodeKeeper(
            stack, "Keeper", group_name="nodes", cluster_name="training", records=records, replacements=2
        )
        gate = FleetGate(
            stack,
            "Gate",
            group_name="nodes",
            nodes="2",
            launch_template_version="1",
            records=records,
            keeper=keeper,
            cluster_name="training",
            timeout_minutes=50,
        )
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        group_name: str,
        nodes: str,
        launch_template_version: str,
        records: NodeRecords,
        keeper: NodeKeeper,
        cluster_name: str,
        timeout_minutes: int,
        clock: PilotClock | None = None,
    ) -> None:
        """
        group_name, nodes: the Auto Scaling group, and how many instances it is to have, as text.
        launch_template_version: number of the version that the instances are of, as text; a new one means new instances
            to wait for.
        records: where the nodes report to.
        keeper: replaces failed nodes and writes the membership.
        cluster_name: what the instances are tagged with, as trn:cluster.
        timeout_minutes: how long to wait, up to 55.
        clock: who says how many of the nodes there are to be at the time. Default: all of them.

        Raises PropsError for what is none of these, and where records, group and cluster are not those of the keeper.
        """
        super().__init__(scope, construct_id)
        for parameter, value in {"nodes": nodes, "launch_template_version": launch_template_version}.items():
            if not _is_number(value):
                allowed = "a whole number as text, or a CDK token"
                raise refuse(self, parameter, value, allowed=allowed, fix="write it in digits, such as '2'")
        check_known(self, "timeout_minutes", timeout_minutes, why="CloudFormation waits as long")
        check_type(self, "timeout_minutes", timeout_minutes, int, what="whole minutes")
        check_setting(self, "timeout_minutes", timeout_minutes, setting="node_timeout_minutes")
        check_type(self, "records", records, NodeRecords, what="a NodeRecords")
        check_type(self, "keeper", keeper, NodeKeeper, what="a NodeKeeper")
        if clock is not None:
            check_object(self, "clock", clock, has="settings", what="the clock of a pilot")
        given = {"group_name": group_name, "cluster_name": cluster_name, "records": records.node.path}
        for parameter, value in given.items():
            kept = keeper.keeps[parameter]
            if value != kept:
                fix = "give both the same"
                raise refuse(self, parameter, value, allowed=f"{kept}, as {keeper.node.path} has it", fix=fix)
        function = HandlerFunction(self, "Watcher", handler="fleet_readiness", timeout_minutes=15)
        actions = ["DescribeAutoScalingGroups", "DescribeScalingActivities"]
        function.allow(
            actions=[*(f"autoscaling:{action}" for action in actions), "ec2:DescribeInstances"], resources=["*"]
        )
        justify_wildcard(function, "*", "these read-only actions know no resources (Service Authorization Reference)")
        allow_resizing(function, group_name=group_name, cluster_name=cluster_name)
        function.allow_describing_its_stack()
        allow_reading_records(function, records)
        allow_on_nodes(function, actions=["ec2:GetConsoleOutput"], cluster_name=cluster_name)
        called = [keeper.arn, *([clock.arn] if clock else [])]
        function.allow(actions=["lambda:InvokeFunction"], resources=called)
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
                "RecordsBucket": records.bucket.bucket_name,
                "RecordsPrefix": records.prefix,
                "Keeper": keeper.arn,
                "Replacements": keeper.replacements,
                "TimeoutMinutes": timeout_minutes,
                **({"Clock": clock.arn, "Pilot": json.dumps(clock.settings, sort_keys=True)} if clock else {}),
            },
        )
        gate.node.add_dependency(function, keeper, *([clock] if clock else []))
        self.summary = gate.get_att_string("Summary")
