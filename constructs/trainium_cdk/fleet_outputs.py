"""Outputs of a fleet: what a person does next."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from trainium_cdk.props_error import refuse
from trainium_core.naming import FLEET_OUTPUT, GROUP_OUTPUT, RECORDS_OUTPUT
from trainium_core.nodes.next_steps import next_steps
from trainium_core.plan import Plan

_ID = "Outputs"


def add_fleet_outputs(
    fleet: Construct,
    plan: Plan,
    *,
    group_name: str,
    cache_url: str,
    records_bucket: str,
    launched: str,
    proven: str,
    notices: str | None,
) -> None:
    """Add outputs below the fleet, so that their names are those of no other output of the stack.

    Raises PropsError when called again.
    """
    if fleet.node.try_find_child(_ID) is not None:
        fix = "remove the second call"
        raise refuse(fleet, "add_outputs", "a second call", allowed="one call for each fleet", fix=fix)
    stack = Stack.of(fleet)
    scope = Construct(fleet, _ID)
    steps = next_steps(
        cluster_name=plan.cluster_name,
        nodes=plan.nodes,
        neuron_cores=plan.neuron_cores_per_node,
        region=stack.region,
        group_name=group_name,
        cache_url=cache_url,
        destroy=f"cdk destroy {stack.node.path}",
    )
    for step in steps:
        CfnOutput(scope, step.name, description=step.meaning, value=step.value)
    CfnOutput(scope, GROUP_OUTPUT, description="The nodes' Auto Scaling group", value=group_name)
    CfnOutput(scope, RECORDS_OUTPUT, description="The bucket of the node records", value=records_bucket)
    if notices is not None:
        CfnOutput(scope, "Notices", description="Topic that is told before the nodes go", value=notices)
    CfnOutput(scope, "LaunchTemplate", description="What the nodes are launched from", value=launched)
    CfnOutput(scope, FLEET_OUTPUT, description="What the nodes reported", value=proven)
