"""Arguments of a wrong type are refused by every public constructor."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
from aws_cdk import App, CfnParameter, Stack
from aws_cdk import aws_ec2 as ec2

import trainium_cdk
from tests.constructs.synth import new_stack
from trainium_cdk import CompileCache, NeuronFleet, NodeChecks, PropsError, QuotaCheck

TYPE = ec2.InstanceType("trn1.32xlarge")


def parameters() -> Iterator[tuple[str, str, str]]:
    """Each parameter of each constructor and static method: class, function, parameter."""
    for name in trainium_cdk.__all__:
        kind: Any = getattr(trainium_cdk, name)
        if not inspect.isclass(kind) or not kind.__module__.startswith("trainium_cdk.") or kind is PropsError:
            continue
        public = [key for key, member in vars(kind).items() if isinstance(member, staticmethod) and key[0] != "_"]
        for function in ("__init__", *public):
            hints = get_type_hints(getattr(kind, function))
            for parameter in hints.keys() - {"scope", "construct_id", "return"}:
                yield name, function, parameter


@pytest.mark.parametrize(("name", "function", "parameter"), sorted(parameters()))
def test_argument_of_a_wrong_type_is_refused_with_its_parameter(name: str, function: str, parameter: str) -> None:
    kind: Any = getattr(trainium_cdk, name)
    make: Callable[..., Any] = kind if function == "__init__" else getattr(kind, function)
    is_construct = "scope" in inspect.signature(getattr(kind, function)).parameters
    place = {"scope": Stack(App(), "Stack"), "construct_id": "Mine"} if is_construct else {}
    with pytest.raises(PropsError) as refused:
        make(**place, **{parameter: object()})
    assert refused.value.path == ("Stack/Mine" if is_construct else name)
    assert [problem.key for problem in refused.value.problems] == [parameter]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"instance_type": "trn1.32xlarge"},
            "instance_type: got 'trn1.32xlarge'; allowed: a value of type aws_ec2.InstanceType",
        ),
        ({"vpc": "vpc-1"}, "vpc: got 'vpc-1'; allowed: a value of type aws_ec2.IVpc"),
        ({"ready_timeout": 5}, "ready_timeout: got 5; allowed: a value of type Duration or None"),
        ({"dns_servers": "10.0.0.2"}, "dns_servers: got '10.0.0.2'; allowed: a value of type Sequence[str]"),
        ({"role": "nodes"}, "role: got 'nodes'; allowed: a value of type aws_iam.IRole or aws_iam.Role or None"),
        ({"catalog": "types.json"}, "catalog: got 'types.json'; allowed: a value of type Catalog or None"),
        ({"nodes": True}, "nodes: got True; allowed: a value of type int"),
        ({"environment": "A=1"}, "environment: got 'A=1'; allowed: a value of type Mapping[str, str] or None"),
    ],
)
def test_message_names_the_type(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PropsError) as refused:
        NeuronFleet(new_stack(), "Fleet", **arguments)
    assert str(refused.value) == f"Stack/Fleet: {message}; fix: pass a value of this type"


def test_object_with_another_interface_is_refused() -> None:
    stack = new_stack()
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2b"])
    for other in (subnet, CompileCache(stack, "Cache")):
        with pytest.raises(PropsError, match="vpc: got"):
            NeuronFleet(stack, f"Fleet{other.node.id}", instance_type=TYPE, vpc=other)
    with pytest.raises(PropsError, match="cache: got"):
        NeuronFleet(stack, "Other", instance_type=TYPE, vpc=vpc, cache=vpc)


def test_token_of_a_number_is_not_a_wrong_type() -> None:
    count: Any = CfnParameter(new_stack(), "Count", type="Number").value_as_number
    with pytest.raises(PropsError, match="nodes: got a CDK token; allowed: a value known at synthesis"):
        QuotaCheck(new_stack(), "Quota", instance_type=TYPE, nodes=count)


def test_static_method_of_a_value_names_its_class() -> None:
    with pytest.raises(PropsError, match="NodeChecks: suppress: got 'lnc'; allowed: a value of type Sequence"):
        NodeChecks.enforce(suppress="lnc")
