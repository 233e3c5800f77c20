"""The output with the end of a stack, for `trn list`."""

from aws_cdk import CfnOutput, Stack

from trainium_core import Plan
from trainium_core.naming import ENDS_OUTPUT
from trainium_core.plan.pilot_end import read_pilot_end


def add_end(stack: Stack, plan: Plan) -> None:
    """Add the outputs if the plan has an end."""
    if plan.pilot.ends is not None:
        meaning = "When the pilot ends: an instant, or hours after the first deployment"
        CfnOutput(stack, ENDS_OUTPUT, description=meaning, value=str(read_pilot_end(plan.pilot.ends)))
    if plan.pilot.idle_minutes is not None:
        meaning = "After how many minutes without a job and without a NeuronCore in use the nodes end"
        CfnOutput(stack, "IdleMinutes", description=meaning, value=str(plan.pilot.idle_minutes))
