"""A stack of a plan."""

from aws_cdk import Environment, Stack
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_core.naming import stack_name
from trainium_core.plan import Plan
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG


class PlanStack(Stack):
    """A stack of a plan, in the plan's region and the account of the deploying credentials.

    All its resources have the tags of the plan. The stack and its resources have the tag trn:cluster, so commands find
    the stack also after a failed deployment, and `trn destroy` may delete it. The stack has the plan's project ID as
    its tag trn:project, so `trn deploy` does not change it for another project.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=2, cluster_name="research")
        cluster = TrainiumCluster(PlanStack(app, "TrnClusterStack", plan=plan), "Cluster", plan=plan)
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """
        Args:
            construct_id: TrnClusterStack, SageMakerTrainingStack, PcsStack or EksJobsStack, by which `trn deploy` finds
                the stack.
            plan: Describes the cluster.
        """
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            tags={CLUSTER_TAG: plan.cluster_name, **({PROJECT_TAG: plan.project_id} if plan.project_id else {})},
            description=f"AWS Trainium: {construct_id} of the cluster {plan.cluster_name}",
        )
        tag_all(self, plan.cluster_name, plan.tags)
