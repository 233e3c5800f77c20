"""A platform team owns VPC, bucket, bootstrap and permissions: all of them are imported, and cdk-nag checks the app."""

from aws_cdk import App, DefaultStackSynthesizer, Environment, PermissionsBoundary, Stack, Tags, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from trainium_cdk import CompileCache, NeuronFleet

app = App()
platform: dict[str, str] = app.node.get_context("platform")
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
stack = Stack(
    app,
    "Imported",
    env=Environment(region="us-west-2"),
    synthesizer=DefaultStackSynthesizer(qualifier="platform"),
    permissions_boundary=PermissionsBoundary.from_name(platform["boundary"]),
)
vpc = ec2.Vpc.from_vpc_attributes(
    stack, "Vpc", vpc_id=platform["vpc"], availability_zones=["us-west-2d"], vpc_cidr_block="172.31.0.0/16"
)
subnet = ec2.Subnet.from_subnet_attributes(
    stack, "Subnet", subnet_id=platform["subnet"], availability_zone="us-west-2d", route_table_id=platform["routes"]
)
NeuronFleet(
    stack,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    nodes=app.node.get_context("nodes"),
    cluster_name="imported",
    vpc=vpc,
    vpc_subnets=ec2.SubnetSelection(subnets=[subnet]),
    cache=CompileCache(stack, "Cache", bucket=s3.Bucket.from_bucket_name(stack, "Bucket", platform["bucket"])),
)
Tags.of(app).add("cost-center", "42")
app.synth()
