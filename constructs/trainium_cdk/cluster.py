"""A complete cluster: network, cache, file systems and fleet."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_cdk.fleet.created_fleet import fleet_outputs
from trainium_cdk.fleet.fleet_builder import PlannedFleet
from trainium_cdk.from_plan import (
    add_plan_warnings,
    check_region,
    plan_cache,
    plan_file_systems,
    plan_fleet,
    plan_network,
)
from trainium_cdk.network.network import ClusterNetwork
from trainium_cdk.outputs import create_outputs, plan_destroy_command, plan_outputs_scope
from trainium_cdk.pilot.sleep_switch import SleepSwitch, check_sleep, stack_sleep_switch
from trainium_cdk.storage.compile_cache import CompileCache
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core.plan import Plan


class TrainiumCluster(Construct):
    """A complete cluster for a plan. `network`, `cache`, `file_systems` and `fleet` are its constructs.

    It adds outputs to the stack: commands, such as one for a shell on the first node, and the names of resources. In a
    PlanStack, their names have no prefix.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=2)
        cluster = TrainiumCluster(stack, "Cluster", plan=plan)
    """

    network: ClusterNetwork
    cache: CompileCache
    file_systems: Sequence[NodeFileSystem]
    fleet: PlannedFleet

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, sleep: SleepSwitch | None = None) -> None:
        """
        Args:
            plan: Describes the cluster.
            sleep: The switch that `trn sleep` and `trn wake` set. Default: the switch of the stack, created if
                needed.

        Raises:
            PropsError: The switch is in another stack, or another fleet of the app in the account and region has the
                cluster's name.
            PlanError: The plan is for another region than the stack.
        """
        super().__init__(scope, construct_id)
        check_sleep(self, sleep)
        sleep = sleep or stack_sleep_switch(self)
        check_region(self, plan)
        tag_all(self, plan.cluster_name, plan.tags)
        self.network = plan_network(self, "Network", plan, egress=plan.network.new_vpc_egress, sleep=sleep)
        self.cache = plan_cache(self, "CompileCache", plan)
        self.file_systems = plan_file_systems(self, plan, vpc=self.network.vpc, subnet=self.network.subnet)
        props = plan_fleet(plan, network=self.network, cache=self.cache, file_systems=self.file_systems, sleep=sleep)
        self.fleet = PlannedFleet(self, "Fleet", props=props)
        if plan.node.metrics_port is not None and plan.node.metrics_security_group is not None:
            clients = ec2.SecurityGroup.from_security_group_id(
                self, "MetricsClients", plan.node.metrics_security_group, mutable=False
            )
            self.fleet.connections.allow_from(clients, ec2.Port.tcp(plan.node.metrics_port), "Prometheus")
        for part in (self.network, self.cache, *self.file_systems):
            part.node.add_dependency(self.fleet.record)
        destroy = plan_destroy_command(self, "cluster", plan.cluster_name)
        sessions = plan.network.effective_egress != "none"
        create_outputs(plan_outputs_scope(self), fleet_outputs(self.fleet, props, destroy=destroy, sessions=sessions))
        add_plan_warnings(self, plan, "cluster")
