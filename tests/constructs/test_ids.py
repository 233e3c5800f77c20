"""Construct ids in the scope of the app's stack begin with the name of the package, so they do not conflict."""

from functools import cache

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from tests.constructs.synth import Json, new_stack, synthesize
from trainium_cdk import (
    Budget,
    ClusterNetwork,
    CompileCache,
    ElasticFileSystem,
    NeuronFleet,
    SageMakerTraining,
)

OF_AN_APP = {"Network", "Cache", "Files", "Fleet", "Training"}
OURS, OF_THE_CDK = (
    "TrainiumCdk",
    ("BootstrapVersion", "CheckBootstrapVersion", "SsmParameterValue:", "SsmParameterValue"),
)


@cache
def app() -> tuple[set[str], Json]:
    """The ids below a stack of many constructs, and its template."""
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", zone_id="usw2-az4")
    files = ElasticFileSystem(stack, "Files", vpc=network.vpc, subnet=network.subnet)
    cache = CompileCache(stack, "Cache")
    trn1 = ec2.InstanceType("trn1.32xlarge")
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=trn1,
        cluster_name="one",
        vpc=network.vpc,
        cache=cache,
        file_systems=[files],
        budget=Budget.usd(9),
    )
    fleet.add_outputs()
    SageMakerTraining(stack, "Training", cluster_name="one", cache=cache)
    template = synthesize(stack).json
    return {child.node.id for child in stack.node.children}, template


def test_ids_in_the_stack_begin_with_the_package_name() -> None:
    ids, _ = app()
    assert ids >= OF_AN_APP
    assert [name for name in ids - OF_AN_APP if not name.startswith((OURS, *OF_THE_CDK))] == []


def test_template_names_begin_with_the_package_or_the_construct() -> None:
    _, template = app()
    names = {*template["Parameters"], *template["Conditions"], *template["Outputs"]}
    assert "Asleep" in names
    assert [name for name in names - {"Asleep"} if not name.startswith((OURS, *OF_AN_APP, *OF_THE_CDK))] == []


def test_imported_cache_uses_no_second_id() -> None:
    stack = new_stack()
    s3.Bucket(stack, "CacheBucket")
    CompileCache.from_compile_cache_attributes(stack, "Cache", bucket_name="my-cache")
    assert {child.node.id for child in stack.node.children} == {"Cache", "CacheBucket"}
