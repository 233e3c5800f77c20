"""Two clusters in two zones that share a cache: one in the Stage of the cache, and one in another Stage."""

from aws_cdk import App, Environment, Stack, Stage, Validations
from aws_cdk import aws_ec2 as ec2
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from trainium_cdk import ClusterNetwork, CompileCache, ICompileCache, NeuronFleet

BUCKET = "two-zones-cache"

app = App()
WEST = Environment(region="us-west-2")


def fleet(scope: Construct, zone_id: str, cache: ICompileCache) -> None:
    network = ClusterNetwork(scope, "Network", zone_id=zone_id, egress="none")
    NeuronFleet(
        scope,
        "Fleet",
        instance_type=ec2.InstanceType("trn1.32xlarge"),
        nodes=app.node.get_context("nodes"),
        cluster_name=f"train-{zone_id}",
        vpc=network.vpc,
        cache=cache,
    )


first = Stage(app, "First", env=WEST)
shared = CompileCache(Stack(first, "Shared"), "Cache", bucket_name=BUCKET)
fleet(Stack(first, "Cluster"), "usw2-az4", shared)

second = Stage(app, "Second", env=WEST)
stack = Stack(second, "Cluster")
fleet(stack, "usw2-az1", CompileCache.from_compile_cache_attributes(stack, "Cache", bucket_name=BUCKET))
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
