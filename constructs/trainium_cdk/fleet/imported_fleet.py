"""Imported fleets."""

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.checks import check, form
from trainium_cdk.fleet.fleet_base import FleetBase


class ImportedFleet(FleetBase):
    """An imported fleet. NeuronFleet.from_neuron_fleet_attributes documents its attributes."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        auto_scaling_group_name: str | None,
        role: iam.IRole | None,
        security_group: ec2.ISecurityGroup | None,
        records_bucket: s3.IBucket | None,
        sleep_function_name: str | None,
        controller_function_name: str | None,
        pilot_topic_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        check(self, form("cluster_name", cluster_name))
        self._cluster_name, self._group_name, self._role = cluster_name, auto_scaling_group_name, role
        if security_group is not None:
            self._connections = ec2.Connections(security_groups=[security_group])
        self._records_bucket, self._pilot_topic_arn = records_bucket, pilot_topic_arn
        self._sleep_function_name, self._controller_name = sleep_function_name, controller_function_name

    def _sleep_function(self) -> str:
        return self._given("sleep_function_name", self._sleep_function_name)
