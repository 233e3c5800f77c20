"""A whole cluster: network, cache and fleet, wired."""

from aws_cdk import Annotations
from constructs import Construct

from trainium_cdk.arguments import check_type
from trainium_cdk.fleet_parts import FleetParts
from trainium_cdk.plan_cache import plan_cache
from trainium_cdk.plan_file_systems import plan_file_systems
from trainium_cdk.plan_network import plan_network
from trainium_cdk.plan_scope import tag_all
from trainium_cdk.planned_fleet import PlannedFleet
from trainium_cdk.sleep_switch import SleepSwitch, check_sleep
from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.plan import Plan


class TrainiumCluster(Construct):
    """Everything a plan asks for. `network`, `cache`, `file_systems` and `fleet` are the constructs it is of.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=2)
        cluster = TrainiumCluster(stack, "Cluster", plan=plan)
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, sleep: SleepSwitch | None = None) -> None:
        """
        plan: all that the cluster is to be.
        sleep: what `trn sleep` and `trn wake` turn. Default: the cluster is always awake.

        Raises PropsError for what is no plan, and PlanError for a plan of another region than the stack's.
        """
        super().__init__(scope, construct_id)
        check_type(
            self, "plan", plan, Plan, what="a Plan, such as Plan(instance_type='trn1.32xlarge', region='us-west-2')"
        )
        check_sleep(self, sleep)
        tag_all(self, plan)
        self.network = plan_network(self, "Network", plan, egress=plan.network.effective_egress, sleep=sleep)
        self.cache = plan_cache(self, "CompileCache", plan)
        self.file_systems = plan_file_systems(self, plan, vpc=self.network.vpc, subnet=self.network.subnet)
        self.fleet = PlannedFleet(
            self,
            "Fleet",
            plan=plan,
            parts=FleetParts(
                vpc=self.network.vpc,
                subnet=self.network.subnet,
                cache=self.cache,
                egress=plan.network.effective_egress,
                file_systems=self.file_systems,
                sleep=sleep,
            ),
        )
        for name, warning in cluster_warnings(plan).items():
            Annotations.of(self).add_warning_v2(f"trn:{name}", warning)
