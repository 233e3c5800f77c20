"""TrnClusterStack: one Trainium cluster, with commands for its users as outputs."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from stacks.end_output import add_end
from trainium_cdk import SleepSwitch, TrainiumCluster
from trainium_cdk.fleet.cluster_names import tag_all
from trainium_cdk.fleet.created_fleet import add_state_outputs
from trainium_core import Plan
from trainium_core.naming import stack_name
from trainium_core.nodes.next_steps import destroy_command, next_steps


class TrnClusterStack(Stack):
    """The cluster of a plan, in the plan's region and the account of the deploying credentials."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            description=f"AWS Trainium cluster {plan.cluster_name}",
        )
        cluster = TrainiumCluster(self, "Cluster", plan=plan, sleep=SleepSwitch(self, "SleepSwitch"))
        tag_all(self, plan.cluster_name, plan.tags)
        steps = next_steps(
            cluster_name=plan.cluster_name,
            nodes=plan.nodes,
            processes=plan.processes_per_node,
            region=plan.region,
            group_name=cluster.fleet.group.ref,
            cache_url=cluster.cache.url,
            destroy=destroy_command(construct_id, plan.cluster_name),
            sessions=plan.network.effective_egress != "none",
        )
        for step in steps:
            CfnOutput(self, step.name, description=step.meaning, value=step.value)
        add_state_outputs(self, cluster.fleet)
        add_end(self, plan)
