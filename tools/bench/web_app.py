"""A web app with a VPC and a load balancer; if FLEET is set, with a fleet as well: what that adds to synthesis."""

import os

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_ecs_patterns as patterns

app = App()
stack = Stack(app, "Web", env=Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2d"])
patterns.ApplicationLoadBalancedFargateService(
    stack,
    "Service",
    vpc=vpc,
    task_image_options=patterns.ApplicationLoadBalancedTaskImageOptions(
        image=ecs.ContainerImage.from_registry("public.ecr.aws/nginx/nginx")
    ),
)
if os.environ.get("FLEET"):
    from trainium_cdk import NeuronFleet

    NeuronFleet(stack, "Fleet", instance_type=ec2.InstanceType("trn1.32xlarge"), nodes=2, vpc=vpc)
app.synth()
