"""A cluster of a plan, and a function that starts jobs on it. Its code is in the folder `start`."""

from aws_cdk import App, Duration, Environment, Stack
from aws_cdk import aws_lambda as lambda_

from trainium_cdk import TrainiumCluster
from trainium_core import Plan

app = App()
stack = Stack(app, "Jobs", env=Environment(region="us-west-2"))
plan = Plan(
    region="us-west-2",
    instance_type="trn1.2xlarge",
    nodes=app.node.get_context("nodes"),
    cluster_name="jobs",
)
cluster = TrainiumCluster(stack, "Cluster", plan=plan)
starter = lambda_.Function(
    stack,
    "Start",
    runtime=lambda_.Runtime.PYTHON_3_13,
    handler="handler.handler",
    code=lambda_.Code.from_asset("start"),
    timeout=Duration.minutes(2),
    environment={"CLUSTER": plan.cluster_name},
)
cluster.fleet.grant_run_jobs(starter)
app.synth()
