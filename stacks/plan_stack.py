"""PlanStack: the name, region, tags and outputs that the stacks of this app share."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_core import Plan
from trainium_core.naming import ENDS_OUTPUT, stack_name
from trainium_core.nodes.next_steps import destroy_command
from trainium_core.plan.pilot_end import read_pilot_end


class PlanStack(Stack):
    """A stack of a plan, in the plan's region and the account of the deploying credentials."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, description: str) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            description=description,
        )
        self.destroy_command = destroy_command(construct_id, plan.cluster_name)
        tag_all(self, plan.cluster_name, plan.tags)

    def add_output(self, name: str, meaning: str, value: str) -> None:
        CfnOutput(self, name, description=meaning, value=value)

    def add_end(self, plan: Plan) -> None:
        """Add outputs with the end and the idle limit of the plan, if it has them. `trn list` reads the end."""
        if plan.pilot.ends is not None:
            meaning = "When the pilot ends: an instant, or hours after the first deployment"
            self.add_output(ENDS_OUTPUT, meaning, str(read_pilot_end(plan.pilot.ends)))
        if plan.pilot.idle_minutes is not None:
            meaning = "Minutes after which nodes without a job and without a NeuronCore in use are terminated"
            self.add_output("IdleMinutes", meaning, str(plan.pilot.idle_minutes))
