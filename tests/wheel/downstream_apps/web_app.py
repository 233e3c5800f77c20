"""A fleet in the VPC of a web app: its load balancer reaches the nodes, and they read its encrypted bucket."""

from pathlib import Path
from typing import cast

from aws_cdk import App, Environment, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk import Capacity, CompileCache, NeuronFleet, SetupScript

app = App()


class Web(Construct):
    """The existing app."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.vpc = ec2.Vpc(self, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
        self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        self.app_group = ec2.SecurityGroup(self, "AppGroup", vpc=self.vpc)
        self.balancer = elbv2.ApplicationLoadBalancer(
            self, "Balancer", vpc=self.vpc, internet_facing=False, security_group=self.app_group
        )
        self.data = s3.Bucket(self, "Data", encryption_key=key, removal_policy=RemovalPolicy.DESTROY)


def service(name: str) -> iam.IPrincipal:
    return cast(iam.IPrincipal, iam.ServicePrincipal(name))


stack = Stack(app, "Web", env=Environment(region="us-west-2"))
# jsii names parameters of some classes differently than their interfaces do, hence the casts.
key = cast(kms.IKey, kms.Key(stack, "Key", removal_policy=RemovalPolicy.DESTROY))
web = Web(stack, "App")
topic = cast(sns.ITopic, sns.Topic(stack, "Topic"))
evaluator = iam.Role(stack, "Evaluator", assumed_by=service("lambda.amazonaws.com"))
node_role = iam.Role(stack, "NodeRole", assumed_by=service("ec2.amazonaws.com"))
Path("setup.sh").write_text('echo "reads $DATA"\n')

fleet = NeuronFleet(
    stack,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    nodes=app.node.get_context("nodes"),
    cluster_name="web-train",
    capacity=Capacity.on_demand(),
    vpc=web.vpc,
    vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2b"]),
    cache=CompileCache(stack, "Cache", encryption_key=key, removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE),
    role=node_role,
    volume_key=key,
    encryption_key=key,
    setup=SetupScript.from_file("setup.sh"),
    environment={"DATA": web.data.s3_url_for_object()},
)
fleet.connections.allow_from(web.app_group, ec2.Port.tcp(8080))
web.data.grant_read(fleet)
fleet.cache.grant_read_write(evaluator)
fleet.metric_failed_nodes().create_alarm(stack, "Bad", threshold=1, evaluation_periods=1)
fleet.on_node_failed("Page", targets.SnsTopic(topic))
fleet.add_outputs()
app.synth()
