"""CDK Pipelines deploys a Stage with a fleet, and runs a job on it in a step whose role the Stage knows by its ARN."""

from aws_cdk import App, Environment, Stack, Stage, pipelines
from aws_cdk import aws_codecommit as codecommit
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from trainium_cdk import ClusterNetwork, NeuronFleet

app = App()
WEST = Environment(region="us-west-2")
RUNNER = "arn:aws:iam::123456789012:role/pipeline-runner"

stage = Stage(app, "Dev", env=WEST)
train = Stack(stage, "Train")
fleet = NeuronFleet(
    train,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.2xlarge"),
    nodes=app.node.get_context("nodes"),
    cluster_name="train",
    vpc=ClusterNetwork(train, "Network", zone_id="usw2-az4", egress="none").vpc,
)
fleet.grant_run_jobs(iam.Role.from_role_arn(train, "Runner", RUNNER))

stack = Stack(app, "Pipeline", env=WEST)
code = codecommit.Repository.from_repository_name(stack, "Code", "train")
source = pipelines.CodePipelineSource.code_commit(code, "main")
pipeline = pipelines.CodePipeline(
    stack, "Pipeline", synth=pipelines.ShellStep("Synth", input=source, commands=["cdk synth"])
)
run = pipelines.CodeBuildStep(
    "Run",
    commands=["trn run job.toml --cluster train --yes"],
    role=iam.Role.from_role_arn(stack, "Runner", RUNNER),
)
pipeline.add_stage(stage, post=[run])
app.synth()
