"""What `cdk init app --language python` makes, with every feature flag that it recommends, and a fleet in it."""

from typing import Any

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk import ClusterNetwork, NeuronFleet


class InitStack(Stack):
    def __init__(self, scope: Construct, construct_id: str, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, **kwargs)
        network = ClusterNetwork(self, "Network", zone_id="usw2-az4")
        NeuronFleet(
            self,
            "Fleet",
            instance_type=ec2.InstanceType("trn1.32xlarge"),
            nodes=self.node.get_context("nodes"),
            vpc=network.vpc,
        )


app = App()
InitStack(app, "InitStack", env=Environment(region="us-west-2"))
app.synth()
