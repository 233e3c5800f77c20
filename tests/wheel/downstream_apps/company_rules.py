"""Aspects of a company name resources, and change the launch template; its boundary denies IAM."""

import jsii
from aws_cdk import App, Aspects, Environment, IAspect, PermissionsBoundary, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import IConstruct

from trainium_cdk import Budget, ClusterNetwork, NeuronFleet

app = App()
nodes: int = app.node.get_context("nodes")
MONITORED = nodes > 1


@jsii.implements(IAspect)
class CompanyRules:
    def visit(self, node: IConstruct) -> None:
        name = f"corp-{node.node.addr[-12:]}"
        if isinstance(node, iam.CfnRole):
            node.role_name = name
        elif isinstance(node, lambda_.CfnFunction):
            node.function_name = name
        elif isinstance(node, sns.CfnTopic):
            node.topic_name = name
        elif isinstance(node, logs.CfnLogGroup):
            node.log_group_name = f"/corp/{name}"
        elif isinstance(node, ec2.CfnLaunchTemplate):
            node.launch_template_name = name
            node.add_property_override("LaunchTemplateData.Monitoring", {"Enabled": MONITORED})


stack = Stack(
    app,
    "Corp",
    env=Environment(region="us-west-2"),
    permissions_boundary=PermissionsBoundary.from_name(app.node.get_context("platform")["boundary"]),
)
NeuronFleet(
    stack,
    "Fleet",
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    # The launch template changes with the number of nodes: only another generation uses the new version.
    node_generation=nodes,
    nodes=nodes,
    cluster_name="corp",
    vpc=ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress="none").vpc,
    budget=Budget.usd(1000, stop=True),
)
Aspects.of(app).add(CompanyRules())
Tags.of(app).add("cost-center", "42")
app.synth()
