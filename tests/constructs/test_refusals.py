"""Invalid parameters are refused at synthesis, with the construct, the parameter, the allowed values and a fix."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from aws_cdk import Aws, Duration, Environment, Fn, NestedStack, RemovalPolicy, Size, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_lambda as lambda_

from tests.constructs.refused_fleets import (
    FLEETS,
    SMALL,
    TRN1,
    a_fleet,
    a_launch_template,
    create,
    fleet,
    in_vpc,
    key_in,
    place,
    role_of,
    some_bucket,
    some_group,
    ssh_group,
    stack_in,
    target_group,
    unique,
)
from tests.constructs.synth import REGION, new_app
from trainium_cdk import (
    ClusterNetwork,
    CompileCache,
    ElasticFileSystem,
    LustreFileSystem,
    NeuronFleet,
    NeuronSubnet,
    NodeImage,
    PilotEnd,
    PropsError,
    QuotaCheck,
    SageMakerTraining,
    SetupScript,
    SleepSwitch,
    TrainiumCluster,
)
from trainium_core import Plan

OTHERS: Mapping[str, tuple[Callable[[], object], str, str]] = {
    "cache with a bucket and a name": (
        lambda: create(CompileCache, bucket=some_bucket(), bucket_name="x"),
        "bucket_name",
        "an existing bucket is not changed",
    ),
    "cache with a bucket and an expiration": (
        lambda: create(CompileCache, bucket=some_bucket(), expiration=Duration.days(3)),
        "expiration",
        "got 3 days; allowed: nothing together with an existing bucket",
    ),
    "cache with an expiration in hours": (
        lambda: create(CompileCache, expiration=Duration.hours(36)),
        "expiration",
        "round it, for example to Duration.days(2)",
    ),
    "cache with the policy SNAPSHOT": (
        lambda: create(CompileCache, removal_policy=RemovalPolicy.SNAPSHOT),
        "removal_policy",
        "got RemovalPolicy.SNAPSHOT; allowed: DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE",
    ),
    "cache with an invalid name": (lambda: create(CompileCache, bucket_name="My_Cache"), "bucket_name", "3 to 63"),
    "imported cache with an invalid name": (
        lambda: CompileCache.from_compile_cache_attributes(place().stack, unique("Cache"), bucket_name="s3://cache"),
        "bucket_name",
        "without s3://",
    ),
    "cache with a key of another region": (
        lambda: create(CompileCache, encryption_key=key_in("us-east-1")),
        "encryption_key",
        "a key of us-west-2",
    ),
    "cache for a function without role": (
        lambda: create(CompileCache, bucket=some_bucket()).grant_read(
            lambda_.Function.from_function_arn(
                place().stack, unique("Function"), "arn:aws:lambda:us-west-2:444455556666:function:reader"
            )
        ),
        "grantee",
        "imported without a role",
    ),
    "Lustre of an invalid size": (
        lambda: in_vpc(LustreFileSystem, size=Size.gibibytes(1300)),
        "size",
        "1200 GiB, or a multiple of 2400",
    ),
    "Lustre with the policy SNAPSHOT": (
        lambda: in_vpc(LustreFileSystem, size=Size.gibibytes(1200), removal_policy=RemovalPolicy.SNAPSHOT),
        "removal_policy",
        "allowed: DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE",
    ),
    "EFS with the policy SNAPSHOT": (
        lambda: in_vpc(ElasticFileSystem, removal_policy=RemovalPolicy.SNAPSHOT),
        "removal_policy",
        "allowed: DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE",
    ),
    "Lustre with a token as size": (
        lambda: in_vpc(LustreFileSystem, size=Size.mebibytes(Token.as_number({"Ref": "Size"}))),
        "size",
        "got a CDK token; allowed: a size known at synthesis",
    ),
    "Lustre of an invalid throughput": (
        lambda: in_vpc(LustreFileSystem, size=Size.gibibytes(1200), per_unit_storage_throughput=100),
        "per_unit_storage_throughput",
        "125, 250, 500, 1000",
    ),
    "network of another region": (lambda: create(ClusterNetwork, zone_id="use1-az4"), "zone_id", "a zone of us-west-2"),
    "network with a zone token": (
        lambda: create(ClusterNetwork, zone_id=Fn.ref("Zone")),
        "zone_id",
        "got a CDK token; allowed: a value known at synthesis",
    ),
    "network with an unknown egress": (
        lambda: create(ClusterNetwork, zone_id="usw2-az4", egress="nat"),
        "egress",
        "vpc-endpoints, nat-gateway, none",
    ),
    "network with the URL of a bucket": (
        lambda: create(ClusterNetwork, zone_id="usw2-az4", s3_buckets=["s3://data/images"]),
        "s3_buckets",
        "without s3://",
    ),
    "quota check with an invalid name": (
        lambda: create(QuotaCheck, instance_type=TRN1, cluster_name="Web Train"),
        "cluster_name",
        "1 to 32 lower-case",
    ),
    "CIDR block of Docker": (
        lambda: create(ClusterNetwork, zone_id="usw2-az4", cidr="172.17.0.0/16"),
        "cidr",
        "Docker's bridge",
    ),
    "VPC given by its name": (
        lambda: ClusterNetwork.from_cluster_network_attributes(
            place().stack, unique("Network"), vpc_id="my-vpc", subnet_id="subnet-0123456789abcdef0"
        ),
        "vpc_id",
        "vpc-0123456789abcdef0",
    ),
    "launch template without group": (
        lambda: a_launch_template(instance_type=SMALL, security_groups=[]),
        "security_groups",
        "the default group of the VPC",
    ),
    "launch template without EFA's rules": (
        lambda: a_launch_template(security_groups=[create(ec2.SecurityGroup, vpc=place().vpc)]),
        "security_groups",
        "add an EfaSecurityGroup",
    ),
    "launch template with a group that allows only SSH within itself": (
        lambda: a_launch_template(security_groups=[ssh_group()]),
        "security_groups",
        "add an EfaSecurityGroup",
    ),
    "launch template with too long user data": (
        lambda: a_launch_template(user_data=ec2.UserData.custom("x" * 20_000)),
        "user_data",
        "up to 16384 bytes",
    ),
    "switch in a nested stack": (
        lambda: create(SleepSwitch, scope=create(NestedStack)),
        "scope",
        "create no SleepSwitch in a nested stack",
    ),
    "two trainings of one name": (
        lambda: [create(SageMakerTraining, scope=stack_in(REGION), cluster_name="twice") for _ in range(2)],
        "cluster_name",
        "set a different cluster_name for each SageMakerTraining",
    ),
    "training with the policy SNAPSHOT": (
        lambda: create(SageMakerTraining, cluster_name="snapshot", removal_policy=RemovalPolicy.SNAPSHOT),
        "removal_policy",
        "allowed: DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE",
    ),
    "training in a region without an image of AWS": (
        lambda: create(SageMakerTraining, scope=stack_in("ap-southeast-5"), cluster_name="far"),
        "image",
        "an image, because AWS has no training image in ap-southeast-5; fix: pass an image in ECR in ap-southeast-5",
    ),
    "training in a stack without a region": (
        lambda: create(SageMakerTraining, scope=Stack(new_app(), "Anywhere"), cluster_name="any"),
        "image",
        "the region of the stack, and so AWS's image there, is unknown at synthesis",
    ),
    "training with a token as image": (
        lambda: create(SageMakerTraining, cluster_name="token", image=Fn.import_value("Image")),
        "image",
        "got a CDK token; allowed: a value known at synthesis",
    ),
    "training with a token as number of instances": (
        lambda: create(SageMakerTraining, cluster_name="most", max_instances=Token.as_number({"Ref": "Most"})),
        "max_instances",
        "got a CDK token; allowed: a value known at synthesis",
    ),
    "training with a key of another region": (
        lambda: create(SageMakerTraining, cluster_name="one", encryption_key=key_in("us-east-1")),
        "encryption_key",
        "a key of us-west-2",
    ),
    "switch of another stack": (
        lambda: create(
            TrainiumCluster,
            plan=Plan(instance_type="trn1.32xlarge", region=REGION),
            sleep=create(SleepSwitch, scope=stack_in(REGION)),
        ),
        "sleep",
        "the SleepSwitch of Web",
    ),
    "imported fleet of an invalid name": (
        lambda: NeuronFleet.from_neuron_fleet_attributes(
            place().stack,
            unique("Fleet"),
            cluster_name="Web Train",
            auto_scaling_group_name="nodes",
            role=role_of("ec2.amazonaws.com"),
            security_group=some_group(),
        ),
        "cluster_name",
        "1 to 32 lower-case",
    ),
    "rule with the construct ID of the controller": (
        lambda: a_fleet().on_node_failed("Controller"),
        "construct_id",
        "such as NodeFailed",
    ),
    "metric without data": (
        lambda: fleet(cloudwatch_metrics="none").metric_silent_nodes(),
        "cloudwatch_metrics",
        "pass cloudwatch_metrics='cluster'",
    ),
    "outputs twice": (lambda: [a_fleet().add_outputs() for _ in range(2)], "add_outputs", "remove the second call"),
    "target group of IP addresses": (
        lambda: a_fleet().attach_to_network_target_group(target_group(target_type=elbv2.TargetType.IP)),
        "target_group",
        "target_type=elbv2.TargetType.INSTANCE",
    ),
}


def refusal(call: Callable[[], object]) -> str:
    """The message of the PropsError that a call raises. The message shows neither an encoded token nor an object."""
    with pytest.raises(PropsError) as caught:
        call()
    message = str(caught.value)
    assert not re.search(r"\$\{Token|e\+289| object at 0x", message), message
    return message


@pytest.mark.parametrize("name", FLEETS)
def test_error_of_a_fleet_names_the_invalid_parameter(name: str) -> None:
    props, parameter, fix = FLEETS[name]
    message = refusal(lambda: fleet(**props()))
    assert f": {parameter}: got " in message
    assert fix in message
    assert "trn:" not in message


@pytest.mark.parametrize("name", OTHERS)
def test_error_of_another_construct_names_the_invalid_parameter(name: str) -> None:
    call, parameter, fix = OTHERS[name]
    message = refusal(call)
    assert f": {parameter}: got " in message
    assert fix in message


def test_several_problems_are_reported_together() -> None:
    message = refusal(lambda: fleet(nodes=0, node_generation=0, logical_neuroncore_config=3))
    assert len(message.splitlines()) == 3


def test_imported_target_group_is_attached_once_with_a_warning() -> None:
    arn = f"arn:aws:elasticloadbalancing:{REGION}:111122223333:targetgroup/nodes/0123456789abcdef"
    group = elbv2.NetworkTargetGroup.from_target_group_attributes(place().stack, "Imported", target_group_arn=arn)
    for _ in range(2):
        a_fleet().attach_to_network_target_group(group)
    nodes: Any = a_fleet().node.default_child
    assert nodes.target_group_arns == [arn]
    warnings = [entry.data for entry in a_fleet().node.metadata if entry.type == "aws:cdk:warning"]
    assert any("it must have the target type instance and be in the nodes' VPC" in warning for warning in warnings)


def test_fleets_of_one_name_in_one_region_are_refused() -> None:
    app = new_app()
    for number, region in enumerate((REGION, "us-east-1", REGION)):
        stack = Stack(app, f"Stack{number}", env=Environment(region=region))
        network = ClusterNetwork(stack, "Network", zone_id="usw2-az4" if region == REGION else "use1-az4")
        props: dict[str, Any] = {"instance_type": TRN1, "vpc": network.vpc, "cluster_name": "one"}
        if number < 2:
            NeuronFleet(stack, "Fleet", **props)
            continue
        with pytest.raises(PropsError, match=r"Stack2/Fleet: cluster_name: .* that of Stack0/Fleet"):
            NeuronFleet(stack, "Fleet", **props)


@pytest.mark.parametrize("kind", [ec2.SubnetType.PUBLIC, ec2.SubnetType.PRIVATE_ISOLATED], ids=lambda kind: kind.name)
def test_subnet_without_route_to_s3_is_refused(kind: ec2.SubnetType) -> None:
    stack = Stack(new_app(), "Stack", env=Environment(region=REGION))
    configuration = [ec2.SubnetConfiguration(name="Nodes", subnet_type=kind)]
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"], subnet_configuration=configuration)
    selection = ec2.SubnetSelection(subnet_type=kind)
    subnet = NeuronSubnet(stack, "Place", vpc=vpc, instance_type=TRN1, vpc_subnets=selection)
    (problem,) = subnet.node.validate()
    assert "fix: Vpc.add_gateway_endpoint('S3', service=ec2.GatewayVpcEndpointAwsService.S3)" in problem
    other = ec2.Vpc(stack, "Other", availability_zones=["us-west-2a"], subnet_configuration=configuration)
    ec2.GatewayVpcEndpoint(stack, "S3OfOther", vpc=other, service=ec2.GatewayVpcEndpointAwsService.S3)
    assert len(subnet.node.validate()) == 1
    ec2.GatewayVpcEndpoint(stack, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3)
    assert subnet.node.validate() == []


def test_isolated_subnet_with_a_default_route_is_accepted() -> None:
    stack = Stack(new_app(), "Stack", env=Environment(region=REGION))
    kind = ec2.SubnetType.PRIVATE_ISOLATED
    configuration = [ec2.SubnetConfiguration(name="Nodes", subnet_type=kind)]
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"], subnet_configuration=configuration)
    selection = ec2.SubnetSelection(subnet_type=kind)
    subnet = NeuronSubnet(stack, "Place", vpc=vpc, instance_type=TRN1, vpc_subnets=selection)
    assert len(subnet.node.validate()) == 1
    ec2.CfnRoute(
        stack,
        "Out",
        route_table_id=vpc.isolated_subnets[0].route_table.route_table_id,
        destination_cidr_block="0.0.0.0/0",
        transit_gateway_id="tgw-0123456789abcdef0",
    )
    assert subnet.node.validate() == []


def test_install_without_a_route_to_the_internet_is_refused() -> None:
    stack = Stack(new_app(), "Stack", env=Environment(region=REGION))
    network = ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress="vpc-endpoints")
    bare = ec2.MachineImage.generic_linux({REGION: "ami-0123456789abcdef0"})
    installing = NeuronFleet(stack, "Fleet", instance_type=TRN1, vpc=network.vpc, image=NodeImage.install_on(bare))
    (problem,) = [problem for problem in installing.node.validate() if "install_on" in problem]
    assert "got NodeImage.install_on() in Stack/Network/Vpc/NodesSubnet1" in problem
    table = network.subnet.route_table.route_table_id
    ec2.CfnRoute(
        stack,
        "Out",
        route_table_id=table,
        destination_cidr_block="0.0.0.0/0",
        transit_gateway_id="tgw-0123456789abcdef0",
    )
    assert not [problem for problem in installing.node.validate() if "install_on" in problem]


def test_second_switch_in_a_stack_is_refused() -> None:
    stack = Stack(new_app(), "Stack")
    SleepSwitch(stack, "One")
    with pytest.raises(PropsError, match=r"Stack/Two: scope: .* this one has Stack/One"):
        SleepSwitch(stack, "Two")


def test_end_is_an_instant_or_a_time_after_deployment() -> None:
    berlin = timezone(timedelta(hours=1))
    pilots = [
        fleet(end=PilotEnd.at(datetime(2030, 1, 1, 12, tzinfo=berlin))).pilot,
        fleet(end=PilotEnd.after(Duration.days(2))).pilot,
    ]
    assert [pilot.settings["ENDS"] for pilot in pilots if pilot] == ["2030-01-01T11:00Z", "48h"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SetupScript.from_text(f"echo {Aws.REGION}"), "pass the value in the fleet's environment"),
        (lambda: SetupScript.from_file("there/is/none.sh"), "there/is/none.sh cannot be read as text"),
        (lambda: SetupScript.from_text(" "), "got ' '; allowed: the text of a bash script"),
        (lambda: SetupScript.from_file("."), "cannot be read as text: Is a directory"),
    ],
    ids=["token", "missing file", "blank", "folder"],
)
def test_setup_script_without_text_known_at_synthesis_is_refused(make: Callable[[], SetupScript], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
