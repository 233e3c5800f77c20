"""A cache and a quota check alone, beside an Auto Scaling group of the app."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2

from trainium_cdk import CompileCache, QuotaCheck

app = App()
app.node.set_context("@aws-cdk/aws-autoscaling:generateLaunchTemplateInsteadOfLaunchConfig", True)
stack = Stack(app, "Own", env=Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"], nat_gateways=0)
trn1 = ec2.InstanceType("trn1.2xlarge")
group = autoscaling.AutoScalingGroup(
    stack,
    "Group",
    vpc=vpc,
    vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
    instance_type=trn1,
    machine_image=ec2.MachineImage.latest_amazon_linux2023(),
    min_capacity=1,
    max_capacity=app.node.get_context("nodes"),
)
CompileCache(stack, "Cache").grant_read_write(group)
group.node.add_dependency(QuotaCheck(stack, "Quota", instance_type=trn1, nodes=1))
app.synth()
