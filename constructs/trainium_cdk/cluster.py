"""A complete cluster: network, cache, file systems and fleet."""

from aws_cdk import Annotations, Stack
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_cdk.fleet.fleet_builder import Fleet
from trainium_cdk.from_plan import check_region, plan_cache, plan_file_systems, plan_fleet, plan_network
from trainium_cdk.pilot.sleep_switch import SleepSwitch, check_sleep
from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.nodes.next_steps import destroy_command
from trainium_core.plan import Plan
from trainium_core.plan.settings.network import DEFAULT_EGRESS


class TrainiumCluster(Construct):
    """A complete cluster for a plan. `network`, `cache`, `file_systems` and `fleet` are its constructs.

    It adds outputs to the stack: commands, such as one for a shell on the first node, and the names of resources.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=2)
        cluster = TrainiumCluster(stack, "Cluster", plan=plan)
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, sleep: SleepSwitch | None = None) -> None:
        """
        Args:
            plan: Describes the cluster.
            sleep: The switch that `trn sleep` and `trn wake` set. Default: none; they then only terminate and launch
                the nodes.

        Raises:
            PropsError: The switch is in another stack, or another fleet of the app in the account and region has the
                cluster's name.
            PlanError: The plan is for another region than the stack.
        """
        super().__init__(scope, construct_id)
        check_sleep(self, sleep)
        check_region(self, plan)
        tag_all(self, plan.cluster_name, plan.tags)
        self.network = plan_network(self, "Network", plan, egress=plan.network.egress or DEFAULT_EGRESS, sleep=sleep)
        self.cache = plan_cache(self, "CompileCache", plan)
        self.file_systems = plan_file_systems(self, plan, vpc=self.network.vpc, subnet=self.network.subnet)
        props = plan_fleet(
            self, plan, network=self.network, cache=self.cache, file_systems=self.file_systems, sleep=sleep
        )
        self.fleet = Fleet(self, "Fleet", props=props)
        stack = Stack.of(self)
        self.fleet.add_outputs_to(
            stack,
            destroy=destroy_command(stack.node.path, "cluster", plan.cluster_name),
            sessions=plan.network.effective_egress != "none",
        )
        for name, warning in cluster_warnings(plan).items():
            Annotations.of(self).add_warning_v2(f"trn:{name}", warning)
