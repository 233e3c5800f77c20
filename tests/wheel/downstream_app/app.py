"""An app of somebody else's: a network they have already, a bucket of their data, and a Trainium fleet added to it."""

from aws_cdk import App, Environment, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from trainium_cdk import CompileCache, NeuronFleet

app = App(outdir="cdk.out")
stack = Stack(app, "Training", env=Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"])
fleet = NeuronFleet(
    stack,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    nodes=2,
    cluster_name="theirs",
    vpc=vpc,
    cache=CompileCache(stack, "Cache"),
)
dataset = s3.Bucket(stack, "Dataset", removal_policy=RemovalPolicy.DESTROY)
dataset.grant_read(fleet)
app.synth()
