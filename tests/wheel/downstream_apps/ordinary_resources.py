"""A fleet beside a web service with a company key, a function, a table and a queue, which change with `nodes`."""

from typing import cast

from aws_cdk import App, Duration, Environment, RemovalPolicy, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from trainium_cdk import NeuronFleet

app = App()
nodes: int = app.node.get_context("nodes")
changed = nodes > 1
stack = Stack(app, "Service", env=Environment(region="us-west-2"))
# jsii names parameters of some classes differently than their interfaces do, hence the casts.
key = cast(kms.IKey, kms.Key(stack, "Key", enable_key_rotation=changed, removal_policy=RemovalPolicy.DESTROY))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)

table = dynamodb.Table(
    stack,
    "Table",
    partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
    encryption_key=key,
    removal_policy=RemovalPolicy.DESTROY,
)
queue = sqs.Queue(
    stack, "Queue", encryption_master_key=key, visibility_timeout=Duration.seconds(60) if changed else None
)
function = lambda_.Function(
    stack,
    "Function",
    runtime=lambda_.Runtime.PYTHON_3_13,
    handler="index.handler",
    code=lambda_.Code.from_inline("def handler(event, context):\n    return event\n"),
    environment={"TABLE": table.table_name, "QUEUE": queue.queue_url},
)
table.grant_read_write_data(function)
queue.grant_send_messages(function)

service = autoscaling.AutoScalingGroup(
    stack,
    "Service",
    vpc=vpc,
    instance_type=ec2.InstanceType("t3.small"),
    machine_image=ec2.MachineImage.latest_amazon_linux2023(),
    require_imdsv2=True,
    min_capacity=1,
    max_capacity=2,
)
service.add_lifecycle_hook("Drain", lifecycle_transition=autoscaling.LifecycleTransition.INSTANCE_TERMINATING)
service.scale_on_schedule("Morning", schedule=autoscaling.Schedule.cron(hour="6", minute="0"), min_capacity=1)
balancer = elbv2.ApplicationLoadBalancer(stack, "Balancer", vpc=vpc, internet_facing=False)
listener = balancer.add_listener(
    "Listener", port=80, open=False, default_action=None if changed else elbv2.ListenerAction.fixed_response(503)
)
if changed:
    listener.add_targets("Web", port=8080, protocol=elbv2.ApplicationProtocol.HTTP, targets=[service])

NeuronFleet(
    stack,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    nodes=nodes,
    cluster_name="beside-a-service",
    vpc=vpc,
    vpc_subnets=ec2.SubnetSelection(availability_zones=["us-west-2b"]),
    encryption_key=key,
)
app.synth()
