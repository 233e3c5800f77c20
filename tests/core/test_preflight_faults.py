"""Preflight with failing AWS calls: a check without an answer never passes.

Against the embedded AWS, with faults injected through botocore's events.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from tests.core.plans import RESERVATION, from_settings
from tests.forked import start_server
from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Finding, verdict
from trainium_core.preflight.runner import CHECKS, no_access, preflight
from trainium_local import lifecycle
from trainium_local.environment import safe_environment
from trainium_local.server import Settings
from trainium_runtime.aws_service import Clients

REGION = "us-west-2"
NEW_VPC, EXISTING_VPC, RESERVED = "a new VPC", "an existing VPC", "a reservation"
FILE_SYSTEMS, ENDING = "existing file systems", "an end"
SLURM = "Slurm on AWS PCS"
TRAINING = "training jobs of SageMaker"

# Operation, a plan whose preflight calls it, the permission, and the checks that are unknown without it.
CALLS = [
    ("sts.GetCallerIdentity", NEW_VPC, "sts:GetCallerIdentity", "identity"),
    ("service-quotas.GetServiceQuota", NEW_VPC, "servicequotas:GetServiceQuota", "quota network limits"),
    ("cloudwatch.GetMetricStatistics", NEW_VPC, "cloudwatch:GetMetricStatistics", "quota"),
    ("ec2.DescribeInstances", NEW_VPC, "ec2:DescribeInstances", "quota"),
    ("ec2.DescribeCapacityReservations", NEW_VPC, "ec2:DescribeCapacityReservations", "quota"),
    ("ec2.DescribeInstanceTypeOfferings", NEW_VPC, "ec2:DescribeInstanceTypeOfferings", "offering"),
    ("ssm.GetParameter", NEW_VPC, "ssm:GetParameter", "image bootstrap"),
    ("ec2.DescribeImages", NEW_VPC, "ec2:DescribeImages", "image"),
    ("ec2.GetEbsDefaultKmsKeyId", NEW_VPC, "ec2:GetEbsDefaultKmsKeyId", "volumes"),
    ("ec2.DescribeVpcs", NEW_VPC, "ec2:DescribeVpcs", "network"),
    ("ec2.DescribeVolumes", NEW_VPC, "ec2:DescribeVolumes", "limits"),
    ("ec2.DescribeNetworkInterfaces", NEW_VPC, "ec2:DescribeNetworkInterfaces", "limits"),
    ("cloudformation.DescribeStacks", NEW_VPC, "cloudformation:DescribeStacks", "stack project"),
    ("cloudformation.DescribeStacks", ENDING, "cloudformation:DescribeStacks", "stack end project"),
    ("budgets.DescribeBudgets", EXISTING_VPC, "budgets:ViewBudget", "budget"),
    ("ec2.DescribeInstances", EXISTING_VPC, "ec2:DescribeInstances", "quota network"),
    ("ec2.DescribePlacementGroups", EXISTING_VPC, "ec2:DescribePlacementGroups", "placement"),
    ("s3.HeadBucket", EXISTING_VPC, "s3:ListBucket on the bucket our-cache", "cache"),
    ("ec2.DescribeSubnets", EXISTING_VPC, "ec2:DescribeSubnets", "offering network"),
    ("ec2.DescribeVpcs", EXISTING_VPC, "ec2:DescribeVpcs", "network"),
    ("ec2.DescribeVpcAttribute", EXISTING_VPC, "ec2:DescribeVpcAttribute", "network"),
    ("ec2.DescribeRouteTables", EXISTING_VPC, "ec2:DescribeRouteTables", "network"),
    ("ec2.DescribeVpcEndpoints", EXISTING_VPC, "ec2:DescribeVpcEndpoints", "network"),
    ("ec2.DescribeCapacityReservations", RESERVED, "ec2:DescribeCapacityReservations", "reservation"),
    ("ec2.DescribeInstances", RESERVED, "ec2:DescribeInstances", "reservation"),
    ("fsx.DescribeFileSystems", FILE_SYSTEMS, "fsx:DescribeFileSystems", "lustre"),
    ("ec2.DescribeNetworkInterfaces", FILE_SYSTEMS, "ec2:DescribeNetworkInterfaces", "lustre limits"),
    ("ec2.DescribeVpcs", FILE_SYSTEMS, "ec2:DescribeVpcs", "network lustre efs"),
    ("efs.DescribeFileSystems", FILE_SYSTEMS, "elasticfilesystem:DescribeFileSystems", "efs"),
    ("efs.DescribeMountTargets", FILE_SYSTEMS, "elasticfilesystem:DescribeMountTargets", "efs"),
    (
        "efs.DescribeMountTargetSecurityGroups",
        FILE_SYSTEMS,
        "elasticfilesystem:DescribeMountTargetSecurityGroups",
        "efs",
    ),
    ("ec2.DescribeSecurityGroups", FILE_SYSTEMS, "ec2:DescribeSecurityGroups", "efs"),
    ("service-quotas.GetServiceQuota", TRAINING, "servicequotas:GetServiceQuota", "training"),
    ("pcs.ListClusters", SLURM, "pcs:ListClusters", "pcs"),
    ("ec2.DescribeAddresses", SLURM, "ec2:DescribeAddresses", "limits"),
    ("ec2.DescribeNatGateways", SLURM, "ec2:DescribeNatGateways", "limits"),
]
COST = "cost"
"""The only check that has a result in spite of a fault: it then uses the snapshot of prices, and reports that."""

RESERVATION_WITH_ROOM = {
    "CapacityReservationId": RESERVATION,
    "OwnerId": "123456789012",
    "InstanceType": "trn1.32xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZoneId": "usw2-az1",
    "Tenancy": "default",
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 2,
    "State": "active",
}


Fault = Callable[[str], tuple[int, Mapping[str, Any]] | None]
"""For an operation: the status and the parsed response that replace AWS's, or None to call the embedded AWS."""


@pytest.fixture(autouse=True, scope="module")
def _without_aws_settings_of_the_user() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        environment.setenv("AWS_ACCESS_KEY_ID", "nobody")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(autouse=True)
def _no_pause_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An embedded AWS with the version parameter of the CDK bootstrap."""
    folder: Path = tmp_path_factory.mktemp("trn-local")
    connection = start_server(folder, Settings(region=REGION))
    with pytest.MonkeyPatch.context() as environment:
        for name, value in safe_environment(os.environ, connection).items():
            environment.setenv(name, value)
        boto3.client("ssm", REGION).put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="21", Type="String")
        yield connection.endpoint
    lifecycle.stop(folder)


@pytest.fixture(scope="module")
def plans(endpoint: str) -> Mapping[str, Plan]:  # noqa: ARG001
    ec2 = boto3.client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZoneId="usw2-az4")["Subnet"]["SubnetId"]
    for service in ("ssm", "ssmmessages"):
        ec2.create_vpc_endpoint(
            VpcId=vpc, ServiceName=f"com.amazonaws.{REGION}.{service}", VpcEndpointType="Interface", SubnetIds=[subnet]
        )
    main = [{"Name": "vpc-id", "Values": [vpc]}]
    table = ec2.describe_route_tables(Filters=main)["RouteTables"][0]["RouteTableId"]
    ec2.create_placement_group(GroupName="ours", Strategy="cluster")
    here = {"LocationConstraint": REGION}
    boto3.client("s3", REGION).create_bucket(Bucket="our-cache", CreateBucketConfiguration=here)
    own = {"nodes": 2, "vpc_id": vpc, "subnet_id": subnet, "route_table_id": table}
    return {
        NEW_VPC: from_settings(nodes=2),
        EXISTING_VPC: from_settings(**own, cache_bucket="our-cache", placement_group="ours", budget_usd=200),
        FILE_SYSTEMS: from_settings(**own, **file_systems(vpc, subnet)),
        ENDING: from_settings(nodes=2, ends="5d"),
        RESERVED: from_settings(nodes=2, capacity="reservation", reservation_id=RESERVATION),
        TRAINING: from_settings(nodes=2, stacks=("sagemaker",)),
        SLURM: from_settings(nodes=2, stacks=("pcs",)),
    }


def file_systems(vpc: str, subnet: str) -> dict[str, str]:
    """The settings of an FSx for Lustre and an EFS file system in a subnet."""
    ec2, fsx, efs = boto3.client("ec2", REGION), boto3.client("fsx", REGION), boto3.client("efs", REGION)
    in_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    group = ec2.describe_security_groups(Filters=in_vpc)["SecurityGroups"][0]["GroupId"]
    settings = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet], "SecurityGroupIds": [group]}
    from_itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[from_itself])
    lustre = fsx.create_file_system(**settings)["FileSystem"]
    file_system = efs.create_file_system(CreationToken="of these tests")["FileSystemId"]
    efs.create_mount_target(FileSystemId=file_system, SubnetId=subnet, SecurityGroups=[group])
    return {
        "fsx_lustre": lustre["FileSystemId"],
        "fsx_lustre_mount_name": lustre["LustreConfiguration"]["MountName"],
        "fsx_lustre_security_group": group,
        "efs": file_system,
        "efs_security_group": group,
    }


def account(kind: str, fault: Fault) -> AwsAccount:
    """An account with everything that this kind of plan needs, except for the fault."""
    session = boto3.Session()

    def answer(event_name: str, **_: Any) -> tuple[AWSResponse, Mapping[str, Any]] | None:
        operation = event_name.removeprefix("before-call.")
        replaced = fault(operation)
        if replaced is None and (kind, operation) == (RESERVED, "ec2.DescribeCapacityReservations"):
            replaced = (200, {"CapacityReservations": [RESERVATION_WITH_ROOM]})
        return replaced and (AWSResponse("", replaced[0], {}, None), replaced[1])

    session.events.register("before-call", answer)
    return AwsAccount(REGION, clients=Clients(session))


def error(code: str, message: str = "no") -> tuple[int, Mapping[str, Any]]:
    return 400, {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}


def denial(operation: str) -> tuple[int, Mapping[str, Any]]:
    return error("UnauthorizedOperation" if operation.startswith("ec2.") else "AccessDeniedException")


def by_check(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


def nothing_passes(findings: tuple[Finding, ...]) -> bool:
    return all(finding.outcome == "unknown" for finding in findings if finding.check != COST)


@pytest.fixture(scope="module")
def without_a_fault(plans: Mapping[str, Plan]) -> Mapping[str, tuple[Finding, ...]]:
    """The findings for each plan if every call succeeds. CALLS must contain every call."""
    operations: set[str] = set()
    findings = {
        kind: preflight(plan, account(kind, lambda operation: operations.add(operation)))
        for kind, plan in plans.items()
    }
    assert operations <= {operation for operation, _, _, _ in CALLS}
    return findings


@pytest.mark.parametrize("kind", [NEW_VPC, EXISTING_VPC, RESERVED, FILE_SYSTEMS, SLURM])
def test_plan_without_a_fault_is_ready(without_a_fault: Mapping[str, tuple[Finding, ...]], kind: str) -> None:
    assert verdict(without_a_fault[kind]) == "ready", without_a_fault[kind]


@pytest.mark.parametrize(("denied", "kind", "permission", "checks"), CALLS)
def test_denied_call_makes_only_its_checks_unknown(
    plans: Mapping[str, Plan],
    without_a_fault: Mapping[str, tuple[Finding, ...]],
    denied: str,
    kind: str,
    permission: str,
    checks: str,
) -> None:
    healthy = by_check(without_a_fault[kind])
    findings = by_check(
        preflight(plans[kind], account(kind, lambda operation: denial(operation) if operation == denied else None))
    )
    changed = {check for check, finding in findings.items() if finding != healthy.get(check)}
    assert changed == set(checks.split())
    for check in changed:
        assert findings[check].outcome == "unknown"
        assert findings[check].found == f"not allowed to read: the permission {permission} is missing"


@pytest.mark.parametrize("code", ["OptInRequired", "UnrecognizedClientException"])
def test_disabled_region_is_unknown(plans: Mapping[str, Plan], code: str) -> None:
    findings = preflight(plans[NEW_VPC], account(NEW_VPC, lambda _: error(code, "not for you")))
    assert nothing_passes(findings)
    hint = "the credentials are not valid, or this region is not enabled in the account"
    assert by_check(findings)["offering"].found == f"AWS answered {code}: not for you; {hint}"


@pytest.mark.parametrize("code", ["Throttling", "InternalError"])
def test_other_errors_are_unknown_with_the_message_of_aws(plans: Mapping[str, Plan], code: str) -> None:
    findings = preflight(plans[NEW_VPC], account(NEW_VPC, lambda _: error(code, "Rate exceeded")))
    assert nothing_passes(findings)
    assert f"AWS answered {code}: Rate exceeded" in by_check(findings)["offering"].found


@pytest.mark.parametrize("kind", [NEW_VPC, EXISTING_VPC, FILE_SYSTEMS])
def test_empty_response_is_unknown(plans: Mapping[str, Plan], kind: str) -> None:
    assert nothing_passes(preflight(plans[kind], account(kind, lambda _: (200, {"ResponseMetadata": {}}))))


def test_unreachable_endpoint_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    findings = preflight(from_settings(nodes=2), AwsAccount(REGION))
    assert nothing_passes(findings)
    assert "Could not connect to the endpoint" in by_check(findings)["offering"].found


@pytest.fixture
def _without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")


@pytest.fixture
def _with_an_unknown_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "none-such")


SIGNED_OUT = [("_without_credentials", "credentials"), ("_with_an_unknown_profile", "none-such")]


@pytest.mark.parametrize(("how", "says"), SIGNED_OUT)
def test_missing_credentials_are_reported_once_with_the_fix(
    request: pytest.FixtureRequest, how: str, says: str
) -> None:
    request.getfixturevalue(how)
    first, *others = preflight(from_settings(nodes=2), AwsAccount(REGION))
    assert (first.check, first.outcome, says in first.found) == ("identity", "unknown", True)
    assert "aws sso login" in first.fix
    assert {finding.found for finding in others if finding.check != COST} == {"not checked: see identity"}
    assert nothing_passes((first, *others))


def test_every_check_has_a_fault() -> None:
    tried = {check for _, _, _, checks in CALLS for check in checks.split()}
    assert CHECKS.keys() - tried - {COST} == set()


def test_expired_credentials_are_reported_once(plans: Mapping[str, Plan]) -> None:
    findings = preflight(plans[NEW_VPC], account(NEW_VPC, lambda _: error("ExpiredToken", "it is expired")))
    assert nothing_passes(findings)
    assert (no_access(findings) or "").startswith("the credentials have expired: sign in with `aws sso login`")
    assert by_check(findings)["offering"].found == "not checked: see identity"
