"""The stack of `cdk init app --language python`, with a fleet in it; also an app by itself."""

from typing import Any

from aws_cdk import App, Stack
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
            nodes=int(self.node.get_context("nodes")),
            vpc=network.vpc,
        )


if __name__ == "__main__":
    app = App()
    InitStack(app, "InitStack")
    app.synth()
