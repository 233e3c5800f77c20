"""PcsStack: Slurm on AWS PCS, with outputs for its users."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from stacks.end_output import add_end
from trainium_cdk import PcsCluster
from trainium_cdk.fleet.cluster_names import tag_all
from trainium_core import Plan
from trainium_core.naming import (
    PCS_CLUSTER_OUTPUT,
    PCS_GROUP_OUTPUT,
    PCS_LOGIN_OUTPUT,
    RECORDS_OUTPUT,
    stack_name,
)
from trainium_core.nodes.next_steps import DOCUMENT, LOGIN, destroy_command


class PcsStack(Stack):
    """The AWS PCS cluster of a plan, in the plan's region and the account of the deploying credentials."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(construct_id, plan.cluster_name),
            env=Environment(region=plan.region),
            description=f"Slurm on AWS PCS with AWS Trainium, {plan.cluster_name}",
        )
        slurm = PcsCluster(self, "Slurm", plan=plan)
        tag_all(self, plan.cluster_name, plan.tags)
        for name, meaning, value in (
            (PCS_CLUSTER_OUTPUT, "The AWS PCS cluster", slurm.cluster.attr_id),
            (PCS_GROUP_OUTPUT, "The compute node group", slurm.group.attr_id),
            (RECORDS_OUTPUT, "The bucket with the nodes' records", slurm.records.bucket.bucket_name),
            ("CompileCache", "The folder of compiled graphs", slurm.cache.url),
            ("SlurmLogs", "The log group of slurmctld and of completed jobs", slurm.logs.log_group.log_group_name),
            ("Notices", "Topic of notices about failing nodes and the end of the pilot", slurm.pilot.topic.topic_arn),
            ("Destroy", "Removes everything", destroy_command(construct_id, plan.cluster_name)),
        ):
            CfnOutput(self, name, description=meaning, value=value)
        if slurm.login is not None:
            login = slurm.login.attr_id
            CfnOutput(self, PCS_LOGIN_OUTPUT, description="The group of the login node", value=login)
            instance = (
                f"aws ec2 describe-instances --region {plan.region} --filters "
                f"Name=tag:aws:pcs:compute-node-group-id,Values={login} Name=instance-state-name,Values=running "
                "--query 'Reservations[0].Instances[0].InstanceId' --output text"
            )
            meaning = "A shell on the login node, by the AWS CLI and its Session Manager plugin"
            value = (
                f"aws ssm start-session --region {plan.region} --document-name {DOCUMENT} "
                f"--parameters command='{LOGIN}' --target $({instance})"
            )
            CfnOutput(self, "Session", description=meaning, value=value)
        add_end(self, plan)
