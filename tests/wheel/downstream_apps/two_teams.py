"""Two teams share a cache, each with a fleet in a separate stack. One of the fleets goes, the other is renamed."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from trainium_cdk import ClusterNetwork, CompileCache, NeuronFleet

app = App()
changed: bool = app.node.get_context("nodes") > 1
WEST = Environment(region="us-west-2")
cache = CompileCache(Stack(app, "Cache", env=WEST), "Cache")
for team in ("vision", "speech"):
    stack = Stack(app, f"Team-{team}", env=WEST)
    network = ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress="none")
    if changed and team == "vision":
        continue
    NeuronFleet(
        stack,
        "Renamed" if changed else "Fleet",
        instance_type=ec2.InstanceType("trn1.2xlarge"),
        cluster_name=team,
        vpc=network.vpc,
        cache=cache,
    )
app.synth()
