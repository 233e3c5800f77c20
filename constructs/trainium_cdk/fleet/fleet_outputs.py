"""Stack outputs: those by which `trn` finds the nodes of a fleet, and those that describe the deployment."""

from aws_cdk import CfnOutput
from constructs import Construct

from trainium_cdk.fleet.fleet_readiness import FleetReadiness
from trainium_cdk.fleet.launch_template_version import LaunchTemplateVersion
from trainium_cdk.fleet.node_records import NodeRecords
from trainium_cdk.pilot.pilot import Pilot
from trainium_core.naming import FLEET_OUTPUT, GROUP_OUTPUT, RECORDS_OUTPUT


def add_state_outputs(
    scope: Construct,
    *,
    group_name: str,
    records: NodeRecords,
    pilot: Pilot | None,
    version: LaunchTemplateVersion,
    readiness: FleetReadiness,
) -> None:
    """Add the outputs to a scope."""
    bucket_name = records.bucket.bucket_name
    CfnOutput(scope, GROUP_OUTPUT, description="The nodes' Auto Scaling group", value=group_name)
    CfnOutput(scope, RECORDS_OUTPUT, description="The bucket of the node records", value=bucket_name)
    if pilot is not None:
        topic = pilot.topic.topic_arn
        CfnOutput(scope, "Notices", description="Topic of the notices before the pilot ends", value=topic)
    launched = version.summary
    CfnOutput(scope, "LaunchTemplate", description="What the nodes are launched from", value=launched)
    CfnOutput(scope, FLEET_OUTPUT, description="What the nodes reported", value=readiness.summary)
