"""HyperPodStack: one SageMaker HyperPod cluster, with outputs for its users."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from stacks.end_output import add_end
from trainium_cdk import HyperPod
from trainium_cdk.fleet.cluster_names import tag_all
from trainium_core import Plan
from trainium_core.naming import stack_name
from trainium_core.nodes.next_steps import destroy_command


class HyperPodStack(Stack):
    """The HyperPod cluster of a plan, in the plan's region and the account of the deploying credentials."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            description=f"SageMaker HyperPod cluster of AWS Trainium, {plan.cluster_name}",
        )
        pod = HyperPod(self, "HyperPod", plan=plan)
        tag_all(self, plan.cluster_name, plan.tags)
        nodes = f"aws sagemaker list-cluster-nodes --region {plan.region} --cluster-name {pod.cluster.attr_cluster_arn}"
        for name, meaning, value in (
            ("ClusterArn", "The HyperPod cluster", pod.cluster.attr_cluster_arn),
            ("Nodes", "Shows the instances and their health", nodes),
            ("CompileCache", "Where compiled graphs are kept", pod.cache.url),
            ("Destroy", "Removes everything", destroy_command(construct_id, plan.cluster_name)),
        ):
            CfnOutput(self, name, description=meaning, value=value)
        if pod.pilot is not None:
            topic = pod.pilot.topic.topic_arn
            CfnOutput(self, "Notices", description="Topic of the notices before the pilot ends", value=topic)
        add_end(self, plan)
