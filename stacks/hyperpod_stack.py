"""HyperPodStack: one SageMaker HyperPod cluster, with outputs for its users."""

from constructs import Construct

from stacks.plan_stack import PlanStack
from trainium_cdk import HyperPod
from trainium_core import Plan


class HyperPodStack(PlanStack):
    """The HyperPod cluster of a plan."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        description = f"SageMaker HyperPod cluster with AWS Trainium, {plan.cluster_name}"
        super().__init__(scope, construct_id, plan=plan, description=description)
        pod = HyperPod(self, "HyperPod", plan=plan)
        arn = pod.cluster.attr_cluster_arn
        nodes = f"aws sagemaker list-cluster-nodes --region {plan.region} --cluster-name {arn}"
        self.add_output("ClusterArn", "The HyperPod cluster", arn)
        self.add_output("Nodes", "Shows the instances and their status", nodes)
        self.add_output("CompileCache", "S3 folder of compiled graphs", pod.cache.url)
        self.add_output("Destroy", "Deletes the stack; retained resources stay", self.destroy_command)
        if pod.pilot is not None:
            self.add_output("Notices", "SNS topic of notices and alarms of the pilot", pod.pilot.topic.topic_arn)
        self.add_end(plan)
