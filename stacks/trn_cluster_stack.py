"""TrnClusterStack: one Trainium cluster, with commands for its users as outputs."""

from constructs import Construct

from stacks.plan_stack import PlanStack
from trainium_cdk import SleepSwitch, TrainiumCluster
from trainium_cdk.fleet.created_fleet import add_state_outputs
from trainium_core import Plan
from trainium_core.nodes.next_steps import next_steps


class TrnClusterStack(PlanStack):
    """The cluster of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan, description=f"AWS Trainium cluster {plan.cluster_name}")
        cluster = TrainiumCluster(self, "Cluster", plan=plan, sleep=SleepSwitch(self, "SleepSwitch"))
        fleet = cluster.fleet
        steps = next_steps(
            cluster_name=plan.cluster_name,
            nodes=plan.nodes,
            processes=plan.processes_per_node,
            region=plan.region,
            group_name=fleet.group.ref,
            cache_url=cluster.cache.url,
            destroy=self.destroy_command,
            sessions=plan.network.effective_egress != "none",
        )
        for step in steps:
            self.add_output(step.name, step.meaning, step.value)
        add_state_outputs(self, fleet)
        self.add_end(plan)
