"""Wrong use of constructs: refused at synthesis with the construct's path, the parameter and what to do."""

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Aws, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2

from tests.constructs.synth import REGION, new_app
from tests.constructs.wrong_calls import CALLS, a_fleet, a_target_group
from tests.constructs.wrong_objects import OBJECTS
from tests.constructs.wrong_parts import PARTS
from tests.constructs.wrong_use import FLEETS, TRN1, fleet
from trainium_cdk import ClusterNetwork, NeuronFleet, NeuronSubnet, PropsError, SetupScript, SleepSwitch

_NOTHING: Any = None


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(PropsError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", [*FLEETS, *OBJECTS])
def test_a_fleet_says_what_is_wrong_with_its_parameters(name: str) -> None:
    props, parameter, fix = {**FLEETS, **OBJECTS}[name]
    message = refused(lambda: fleet(**props()))
    assert f": {parameter}: got " in message
    assert fix in message
    assert message.split("/Fleet")[0].isalnum() or "/Fleet" in message
    assert "trn:" not in message


@pytest.mark.parametrize("name", [*PARTS, *CALLS])
def test_what_else_is_called_says_what_is_wrong_with_its_parameters(name: str) -> None:
    call, parameter, fix = {**PARTS, **CALLS}[name]
    message = refused(call)
    assert f": {parameter}: got " in message
    assert fix in message


def test_a_target_group_that_takes_no_instances_is_refused_by_its_own_method_in_the_same_words() -> None:
    addresses = a_target_group(target_type=elbv2.TargetType.IP)
    as_the_cdk_has_it: Any = a_fleet()
    with pytest.raises(RuntimeError, match=rf"{a_fleet().node.path}: target_group: got .* the target type ip"):
        addresses.add_target(as_the_cdk_has_it)


def test_a_target_group_is_attached_once_and_what_is_not_known_of_an_imported_one_is_a_warning() -> None:
    arn = f"arn:aws:elasticloadbalancing:{REGION}:111122223333:targetgroup/nodes/0123456789abcdef"
    stack = Stack.of(a_fleet())
    group = elbv2.NetworkTargetGroup.from_target_group_attributes(stack, "Imported", target_group_arn=arn)
    for _ in range(2):
        a_fleet().attach_to_network_target_group(group)
    assert a_fleet().group.target_group_arns == [arn]
    warnings = [one.data for one in a_fleet().node.metadata if one.type == "aws:cdk:warning"]
    assert any("it must be of the target type instance and in the nodes' VPC" in one for one in warnings)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    message = refused(lambda: fleet(nodes=0, generation=0, cluster_name="Web"))
    assert len(message.splitlines()) == 3


def test_two_fleets_of_one_name_are_refused_where_they_would_be_deployed_together() -> None:
    app = new_app()
    for number, region in enumerate((REGION, "us-east-1", REGION)):
        stack = Stack(app, f"Stack{number}", env=Environment(region=region))
        network = ClusterNetwork(stack, "Network", zone_id="usw2-az4" if region == REGION else "use1-az4")
        props: dict[str, Any] = {"instance_type": ec2.InstanceType(TRN1), "vpc": network.vpc, "cluster_name": "one"}
        if number < 2:
            NeuronFleet(stack, "Fleet", **props)
            continue
        with pytest.raises(PropsError, match=r"Stack2/Fleet: cluster_name: .* that of Stack0/Fleet"):
            NeuronFleet(stack, "Fleet", **props)


@pytest.mark.parametrize("kind", [ec2.SubnetType.PUBLIC, ec2.SubnetType.PRIVATE_ISOLATED], ids=lambda one: one.name)
def test_a_subnet_without_a_way_to_s3_is_refused_at_synthesis(kind: ec2.SubnetType) -> None:
    stack = Stack(new_app(), "Stack", env=Environment(region=REGION))
    configuration = [ec2.SubnetConfiguration(name="Nodes", subnet_type=kind)]
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"], subnet_configuration=configuration)
    place = NeuronSubnet(
        stack,
        "Place",
        vpc=vpc,
        instance_type=ec2.InstanceType(TRN1),
        vpc_subnets=ec2.SubnetSelection(subnet_type=kind),
    )
    (problem,) = place.node.validate()
    assert "fix: Vpc.add_gateway_endpoint('S3', service=ec2.GatewayVpcEndpointAwsService.S3)" in problem
    ec2.GatewayVpcEndpoint(stack, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3)
    assert place.node.validate() == []


def test_a_second_switch_in_a_stack_is_refused() -> None:
    stack = Stack(new_app(), "Stack")
    SleepSwitch(stack, "One")
    with pytest.raises(PropsError, match=r"Stack/Two: scope: .* which Stack/One is"):
        SleepSwitch(stack, "Two")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SetupScript.from_text(f"echo {Aws.REGION}"), "give the value to the fleet's environment"),
        (lambda: SetupScript.from_file("there/is/none.sh"), "there/is/none.sh cannot be read as text"),
        (
            lambda: SetupScript.from_text(_NOTHING),
            "got None; allowed: the text of a bash script; fix: give at least one",
        ),
        (lambda: SetupScript.from_text(" "), "got ' '; allowed: the text of a bash script"),
        (lambda: SetupScript.from_text("echo a\0b"), "allowed: the text of a bash script"),
        (lambda: SetupScript.from_file(_NOTHING), "path: got None; allowed: the path of a file"),
        (lambda: SetupScript.from_file("."), "cannot be read as text: Is a directory"),
    ],
    ids=["token", "missing file", "None", "blank", "NUL", "no path", "folder"],
)
def test_a_setup_script_is_text_that_is_known(make: Callable[[], SetupScript], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
