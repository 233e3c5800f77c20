"""Parts of a Trainium cluster, each deployed alone: the embedded AWS refuses invalid ones and accepts valid ones."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import NEURON_IMAGE
from tests.local.stacks import Stacks, trust_of

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("trainium_parts.yaml").read_text())
CASES: list[tuple[str, dict[str, Any], str]] = [tuple(case) for case in TABLE["cases"]]
THREADS = 4

Resources = dict[str, Any]


def _resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def _ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def _arn(name: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, "Arn"]}


def _role(service: str) -> dict[str, Any]:
    return _resource("IAM::Role", AssumeRolePolicyDocument=trust_of(f"{service}.amazonaws.com"))


def _zone(number: int) -> dict[str, Any]:
    return {"Fn::Select": [number, {"Fn::GetAZs": ""}]}


LUSTRE = [
    {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "CidrIp": "10.0.0.0/16"}
    for first, last in [(988, 988), (1018, 1023)]
]
SURROUNDINGS: Resources = {
    "Vpc": _resource("EC2::VPC", CidrBlock="10.0.0.0/16"),
    "Subnet": _resource("EC2::Subnet", VpcId=_ref("Vpc"), CidrBlock="10.0.0.0/24", AvailabilityZone=_zone(0)),
    "OtherSubnet": _resource("EC2::Subnet", VpcId=_ref("Vpc"), CidrBlock="10.0.1.0/24", AvailabilityZone=_zone(1)),
    "Group": _resource("EC2::SecurityGroup", GroupDescription="nodes", VpcId=_ref("Vpc")),
    "LustreGroup": _resource(
        "EC2::SecurityGroup", GroupDescription="Lustre", VpcId=_ref("Vpc"), SecurityGroupIngress=LUSTRE
    ),
    "ForeignVpc": _resource("EC2::VPC", CidrBlock="10.9.0.0/16"),
    "ForeignSubnet": _resource(
        "EC2::Subnet", VpcId=_ref("ForeignVpc"), CidrBlock="10.9.0.0/24", AvailabilityZone=_zone(1)
    ),
    "ForeignGroup": _resource("EC2::SecurityGroup", GroupDescription="others", VpcId=_ref("ForeignVpc")),
    "ClusterGroup": _resource("EC2::PlacementGroup", Strategy="cluster"),
    "Reservation": _resource(
        "EC2::CapacityReservation",
        AvailabilityZone=_zone(0),
        InstanceType="m5.large",
        InstancePlatform="Linux/UNIX",
        InstanceCount=4,
    ),
    "SageMakerRole": _role("sagemaker"),
    "SchedulerRole": _role("scheduler"),
    "FunctionRole": _role("lambda"),
    "Function": _resource(
        "Lambda::Function",
        Runtime="python3.13",
        Handler="index.handler",
        Role=_arn("FunctionRole"),
        Code={"ZipFile": "def handler(event, context): pass"},
    ),
}
VALUES = {name: _arn(name) if name.endswith("Role") else _ref(name) for name in SURROUNDINGS if name != "Function"} | {
    "FunctionArn": _arn("Function"),
    "Image": NEURON_IMAGE,
    "Text4096": "x" * 4096,
}


def _changed(base: Any, change: Any) -> Any:
    """`base` with the keys of `change`; None removes a key."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    old, new = cast(Resources, base), cast(Resources, change)
    merged = old | {key: _changed(old.get(key), value) for key, value in new.items()}
    return {key: value for key, value in merged.items() if value is not None}


def _part(base: str, change: dict[str, Any]) -> Resources:
    """The resource, and for an Auto Scaling group the launch template changed by `launch`."""
    resources: Resources = {}
    if base == "fleet":
        change = dict(change)
        launch = {"LaunchTemplateData": change.pop("launch", {})}
        resources["Template"] = _changed(TABLE["bases"]["template"], {"Properties": launch})
    return resources | {"Part": _changed(TABLE["bases"][base], {"Properties": change})}


class _Deployments:
    """Deployments of single parts into existing surroundings."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self._stacks = Stacks(aws)
        outputs = {name: {"Value": value} for name, value in VALUES.items() if not isinstance(value, str)}
        around = self._stacks.deploy({"Resources": SURROUNDINGS, "Outputs": outputs})
        image = aws.client("ssm").get_parameter(Name=NEURON_IMAGE)["Parameter"]["Value"]
        found = {**self._stacks.outputs(around), "Image": image, "Text4096": "x" * 4096}
        self._parameters = {name: {"Type": "String", "Default": value} for name, value in found.items()}

    def refusal(self, base: str, change: dict[str, Any]) -> str | None:
        """Why the embedded AWS refuses the part; None if it accepts it."""
        resources = _part(base, change)
        used = json.dumps(resources)
        parameters = {name: one for name, one in self._parameters.items() if f'"{name}"' in used}
        try:
            name = self._stacks.create({"Parameters": parameters, "Resources": resources})
        except ClientError as error:
            return str(error)
        status = self._stacks.settled(name)
        reason = self._stacks.failures(name) or self._stacks.reasons(name)
        if status == "CREATE_COMPLETE":
            assert self._stacks.delete(name) == "DELETE_COMPLETE", self._stacks.failures(name)
            return None
        return f"{status}: {reason}"


@pytest.fixture(scope="module")
def refusals(embedded_aws: EmbeddedAws) -> Iterator[dict[int, Future[str | None]]]:
    deployments = _Deployments(embedded_aws)
    with ThreadPoolExecutor(THREADS) as pool:
        yield {number: pool.submit(deployments.refusal, base, change) for number, (base, change, _) in enumerate(CASES)}


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{base}-{change}"[:90] for base, change, _ in CASES])
def test_part_is_refused_or_accepted_as_listed(number: int, refusals: dict[int, Future[str | None]]) -> None:
    answer = CASES[number][2]
    refusal = refusals[number].result()
    if not answer:
        assert refusal is None
    else:
        assert refusal is not None, "accepted"
        assert answer in refusal
