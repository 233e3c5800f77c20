"""The VPC and its subnets are in SSM parameters: CloudFormation reads them, and the deployment chooses the zone."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm

from trainium_cdk import NeuronFleet

app = App()
stack = Stack(app, "Parameters", env=Environment(region="us-west-2"))


def parameter(name: str) -> str:
    return ssm.StringParameter.value_for_string_parameter(stack, f"/company/{name}")


vpc = ec2.Vpc.from_vpc_attributes(
    stack,
    "Vpc",
    vpc_id=parameter("vpc"),
    availability_zones=["us-west-2a", "us-west-2d"],
    private_subnet_ids=[parameter("subnet-a"), parameter("subnet-d")],
)
NeuronFleet(
    stack,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    nodes=app.node.get_context("nodes"),
    cluster_name="parameters",
    vpc=vpc,
)
app.synth()
