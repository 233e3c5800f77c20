"""The AWS calls of an audit only read, name a denied permission, skip deleted resources, and return charges."""

import json
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from botocore.stub import Stubber

from trainium_core.audit import listings
from trainium_core.audit.aws_account import AwsAuditedAccount
from trainium_core.audit.listings.listing import AwsResourceLister, Listing, Location, gib
from trainium_core.audit.listings.registry import LISTINGS
from trainium_core.audit.resource import Resource
from trainium_core.audit.stack_record import AuditedStack
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

LOCATION = Location(partition="aws", region="us-west-2", account="123456789012")
LISTING = {listing.kind: listing for listing in LISTINGS}


@cache
def clients() -> Clients:
    """Shared by all tests: creating a client takes longer than a test."""
    return Clients()


@contextmanager
def stubbed(listing: Listing) -> Iterator[tuple[AwsResourceLister, Stubber]]:
    with Stubber(clients().client(listing.service, listing.endpoint_region or LOCATION.region)) as stub:
        yield AwsResourceLister(listing, LOCATION, clients()), stub


def listed(kind: str, answer: dict[str, Any]) -> list[Resource]:
    with stubbed(LISTING[kind]) as (lister, stub):
        stub.add_response(LISTING[kind].operation, answer)
        for _ in LISTING[kind].more_arguments:
            stub.add_response(LISTING[kind].operation, {"TrainingJobSummaries": []})
        return list(lister.resources())


def test_denied_call_names_the_permission() -> None:
    with stubbed(LISTING["EBS volume"]) as (lister, stub):
        stub.add_client_error("describe_volumes", "AccessDeniedException", "no")
        with pytest.raises(UnavailableError, match="the permission ec2:DescribeVolumes is missing"):
            list(lister.resources())


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.kind)
def test_listing_calls_an_operation_that_only_reads(listing: Listing) -> None:
    assert listing.operation.startswith(("describe_", "list_", "get_"))
    assert hasattr(clients().client(listing.service, LOCATION.region), listing.operation)


def test_every_listing_of_the_folder_is_registered() -> None:
    modules = [import_module(f"{listings.__name__}.{found.name}") for found in pkgutil.iter_modules(listings.__path__)]
    made = {value.kind for module in modules for value in vars(module).values() if isinstance(value, Listing)}
    assert made - LISTING.keys() == set(), "no audit looks for these: put them into audit/listings/registry.py"


def test_kinds_and_types_are_distinguished() -> None:
    assert len({listing.kind for listing in LISTINGS}) == len(LISTINGS)
    assert len({listing.resource_type for listing in LISTINGS}) == len(LISTINGS)
    assert len({listing.arn_type for listing in LISTINGS}) == len(LISTINGS)


INSTANCE: dict[str, Any] = {"InstanceId": "i-1", "InstanceType": "trn1.32xlarge", "State": {"Name": "running"}}


def instances(**changes: Any) -> list[Resource]:
    return listed("EC2 instance", {"Reservations": [{"Instances": [INSTANCE | changes]}]})


@pytest.mark.parametrize(
    ("changes", "products"),
    [
        ({}, ["on-demand"]),
        ({"InstanceLifecycle": "spot"}, ["spot"]),
        ({"InstanceLifecycle": "capacity-block"}, []),
        ({"State": {"Name": "stopped"}}, []),
    ],
)
def test_instance_price_depends_on_its_market_and_state(changes: dict[str, Any], products: list[str]) -> None:
    (resource,) = instances(**changes)
    assert [item.product for item in resource.charge.items] == products


RESERVATION: dict[str, Any] = {
    "CapacityReservationId": "cr-1",
    "InstanceType": "trn1.32xlarge",
    "TotalInstanceCount": 3,
    "AvailableInstanceCount": 1,
    "State": "active",
}


def reservations(**changes: Any) -> list[Resource]:
    return listed("capacity reservation", {"CapacityReservations": [RESERVATION | changes]})


def test_only_unused_part_of_a_reservation_is_billed() -> None:
    (resource,) = reservations()
    assert [(item.product, item.quantity) for item in resource.charge.items] == [("on-demand", 1)]


def test_capacity_block_has_no_running_cost() -> None:
    (resource,) = reservations(ReservationType="capacity-block")
    assert (resource.charge.items, resource.charge.note) == ((), "paid when it was bought")


def test_launch_template_is_part_of_the_node_group_in_its_tags() -> None:
    tags = [{"Key": "eks:cluster-name", "Value": "prod"}, {"Key": "eks:nodegroup-name", "Value": "trn"}]
    template = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "eks-1", "Tags": tags}
    (resource,) = listed("launch template", {"LaunchTemplates": [template]})
    assert resource.parents == {"prod/trn"}


def test_node_group_that_is_deleted_after_it_was_listed_is_left_out() -> None:
    group = {
        "nodegroupName": "trn",
        "clusterName": "prod",
        "nodegroupArn": "arn:aws:eks:us-west-2:123456789012:nodegroup/prod/trn/1",
        "status": "ACTIVE",
        "scalingConfig": {"desiredSize": 2},
    }
    with stubbed(LISTING["EKS node group"]) as (lister, stub):
        stub.add_response("list_clusters", {"clusters": ["deleted", "prod"]})
        stub.add_client_error("list_nodegroups", "ResourceNotFoundException")
        stub.add_response("list_nodegroups", {"nodegroups": ["gone", "trn"]})
        stub.add_client_error("describe_nodegroup", "ResourceNotFoundException")
        stub.add_response("describe_nodegroup", {"nodegroup": group})
        (resource,) = lister.resources()
    assert (resource.ids, resource.detail) == ({"prod/trn"}, "2 desired, in prod")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("NAT gateway", {"NatGateways": [{"NatGatewayId": "nat-1", "VpcId": "vpc-1", "State": "deleted"}]}),
        ("EventBridge rule", {"Rules": [{"Name": "r", "Arn": "arn:x", "ManagedBy": "autoscaling.amazonaws.com"}]}),
        ("security group", {"SecurityGroups": [{"GroupId": "sg", "VpcId": "v", "GroupName": "default"}]}),
        ("VPC", {"Vpcs": [{"VpcId": "v", "IsDefault": True, "State": "available", "CidrBlock": "10.0.0.0/16"}]}),
    ],
)
def test_deleted_or_implicit_resource_is_not_listed(kind: str, answer: dict[str, Any]) -> None:
    assert listed(kind, answer) == []


def test_key_scheduled_for_deletion_is_skipped() -> None:
    with stubbed(LISTING["KMS key"]) as (lister, stub):
        stub.add_response("describe_key", {"KeyMetadata": {"KeyId": "k", "KeyState": "PendingDeletion"}})
        assert lister.measured(Resource(name="k", arn="arn:x", ids=frozenset(["k"]))) is None


def test_bucket_too_large_to_count_has_unknown_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainium_core.audit.listings.s3.PAGES", 1)
    version = {"Key": "k", "VersionId": "v", "Size": 2**30, "IsLatest": True, "StorageClass": "STANDARD"}
    page = {"Versions": [version], "IsTruncated": True, "NextKeyMarker": "k", "NextVersionIdMarker": "v"}
    with stubbed(LISTING["S3 bucket"]) as (lister, stub):
        stub.add_response("list_object_versions", page)
        stub.add_response("list_object_versions", {"Versions": [version], "IsTruncated": False})
        stub.add_response("list_multipart_uploads", {})
        measured = lister.measured(Resource(name="b", arn="arn:aws:s3:::b", ids=frozenset(["b"])))
    assert measured is not None
    assert measured.detail == "more than 1 object version (0 noncurrent), 1 GiB"
    assert measured.charge.unpriced == "more versions than were counted"


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 byte"), (2**20 - 1, "1,048,575 bytes"), (3 * 2**29, "1.5 GiB"), (1200 * 2**30, "1,200 GiB")],
)
def test_size_has_no_exponent(size: int, text: str) -> None:
    assert gib(size) == text


LUSTRE: dict[str, Any] = {"FileSystemId": "fs-0123456789abcdef0", "FileSystemType": "LUSTRE", "StorageCapacity": 1200}


@pytest.mark.parametrize(
    ("lustre", "priced"),
    [
        ({"LustreConfiguration": {"DeploymentType": "SCRATCH_2"}, "StorageType": "SSD"}, True),
        ({"LustreConfiguration": {"DeploymentType": "PERSISTENT_2"}, "StorageType": "SSD"}, False),
        ({}, False),
    ],
)
def test_only_scratch_ssd_lustre_has_a_price(lustre: dict[str, Any], priced: bool) -> None:
    (resource,) = listed("FSx file system", {"FileSystems": [LUSTRE | lustre]})
    assert (bool(resource.charge.items), bool(resource.charge.unpriced)) == (priced, not priced)


def test_intelligent_tiering_lustre_without_capacity_is_listed() -> None:
    file_system = {**LUSTRE, "StorageType": "INTELLIGENT_TIERING"}
    del file_system["StorageCapacity"]
    (resource,) = listed("FSx file system", {"FileSystems": [file_system]})
    assert (resource.detail, bool(resource.charge.unpriced)) == ("LUSTRE", True)


@pytest.mark.parametrize(
    ("more", "priced"),
    [
        ({}, [3]),
        ({"SizeInBytes": {"Value": 3 * 2**30, "ValueInIA": 2**30}}, [2]),
        ({"AvailabilityZoneId": "usw2-az1"}, []),
    ],
)
def test_only_regional_standard_efs_storage_has_a_price(more: dict[str, Any], priced: list[int]) -> None:
    file_system = {"OwnerId": "1", "CreationToken": "t", "FileSystemId": "fs-1", "CreationTime": "2026-11-21T00:00:00Z"}
    file_system |= {"LifeCycleState": "available", "NumberOfMountTargets": 0, "PerformanceMode": "generalPurpose"}
    file_system |= {"Tags": [], "SizeInBytes": {"Value": 3 * 2**30}}
    (resource,) = listed("EFS file system", {"FileSystems": [file_system | more]})
    assert [item.quantity for item in resource.charge.items] == priced
    assert bool(resource.charge.unpriced) == bool(more)


@pytest.mark.parametrize(
    ("volume", "priced"),
    [
        ({"VolumeType": "gp3", "Iops": 3000, "Throughput": 125}, True),
        ({"VolumeType": "gp3", "Iops": 16000, "Throughput": 125}, False),
        ({"VolumeType": "gp3", "Iops": 3000, "Throughput": 1000}, True),
        ({"VolumeType": "io2", "Iops": 3000}, False),
    ],
)
def test_only_gp3_volume_with_default_iops_has_a_price(volume: dict[str, Any], priced: bool) -> None:
    (resource,) = listed("EBS volume", {"Volumes": [{"VolumeId": "vol-1", "Size": 10, "State": "in-use"} | volume]})
    assert bool(resource.charge.unpriced) != priced
    faster = {item.product: item.quantity for item in resource.charge.items}.get("gp3-throughput", 0)
    assert faster * 1024 == max(0, volume.get("Throughput", 0) - 125)


class StackResponses:
    """CloudFormation's responses about one stack."""

    def __init__(
        self, status: str, events: list[dict[str, Any]] | None = None, *, template: dict[str, Any] | None = None
    ) -> None:
        created = datetime(2026, 11, 20, tzinfo=UTC)
        stack = {"StackName": "TrnClusterStack", "StackId": "arn:stack", "StackStatus": status}
        self.account = AwsAuditedAccount("us-west-2")
        self.stub = Stubber(self.account.client("cloudformation"))
        self.stub.activate()
        self.stub.add_response(
            "describe_stacks",
            {"Stacks": [stack | {"CreationTime": created, "DeletionTime": created, "Tags": []}]},
        )
        self.stub.add_response("list_stacks", {"StackSummaries": []})
        if template is None:
            self.stub.add_client_error("get_template", "AccessDenied")
        else:
            self.stub.add_response("get_template", {"TemplateBody": json.dumps(template)})
        whole = {"StackId": "arn:stack", "EventId": "1", "StackName": "TrnClusterStack", "Timestamp": created}
        self.stub.add_response("describe_stack_events", {"StackEvents": [whole | event for event in events or ()]})

    @property
    def record(self) -> AuditedStack:
        (found,) = self.account.stack_records(["TrnClusterStack"])
        return found


def test_untagged_stack_belongs_to_the_cluster_of_its_template() -> None:
    tags = [{"Key": "trn:cluster", "Value": "another"}]
    template = {"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"Tags": tags}}}}
    assert StackResponses("CREATE_COMPLETE", template=template).record.cluster == "another"
    assert StackResponses("CREATE_COMPLETE").record.cluster is None


@pytest.mark.parametrize(("output", "is_bootstrap"), [("BootstrapVersion", True), ("BucketName", False)])
def test_bootstrap_stack_with_any_name_is_known_by_its_output(output: str, is_bootstrap: bool) -> None:
    created = datetime(2026, 11, 20, tzinfo=UTC)
    names = {"StackName": "MlToolkit", "StackId": "arn:stack", "StackStatus": "CREATE_COMPLETE"}
    role = {"ResourceType": "AWS::IAM::Role", "PhysicalResourceId": "r", "ResourceStatus": "CREATE_COMPLETE"}
    account = AwsAuditedAccount("us-west-2")
    with Stubber(account.client("cloudformation")) as stub:
        outputs = [{"OutputKey": output, "OutputValue": "30"}]
        stub.add_response("describe_stacks", {"Stacks": [{**names, "CreationTime": created, "Outputs": outputs}]})
        stub.add_response("list_stacks", {"StackSummaries": []})
        event = {"StackId": "arn:stack", "EventId": "1", "StackName": "MlToolkit", "Timestamp": created, **role}
        stub.add_response("describe_stack_events", {"StackEvents": [event]})
        (found,) = account.stack_records(["TrnClusterStack"])
    assert (found.is_bootstrap, found.cluster) == (is_bootstrap, None)
    assert bool(found.made) == is_bootstrap


def test_newest_stack_event_of_each_resource_counts() -> None:
    bucket = {"ResourceType": "AWS::S3::Bucket", "PhysicalResourceId": "b"}
    itself = {"ResourceType": "AWS::CloudFormation::Stack", "PhysicalResourceId": "arn:stack"}
    unborn = {"ResourceType": "AWS::S3::Bucket", "ResourceStatus": "CREATE_IN_PROGRESS"}
    statuses = [{"ResourceStatus": "DELETE_SKIPPED"}, {"ResourceStatus": "CREATE_COMPLETE"}]
    events = [itself | statuses[0], *(bucket | status for status in statuses), unborn]
    assert StackResponses("CREATE_COMPLETE", events).record.made == {("AWS::S3::Bucket", "b"): "DELETE_SKIPPED"}


def test_running_job_stopping_job_and_warm_pool_are_found() -> None:
    arn = "arn:aws:sagemaker:us-west-2:123456789012:training-job/"

    def job(name: str, status: str, **more: Any) -> dict[str, Any]:
        return {"TrainingJobName": name, "TrainingJobArn": arn + name, "TrainingJobStatus": status, **more}

    warm = job("warm", "Completed", CreationTime=0, WarmPoolStatus={"Status": "Available"})
    answers = (
        [job("runs", "InProgress", CreationTime=0)],
        [job("stops", "Stopping", CreationTime=0)],
        [warm, job("ended", "Completed", CreationTime=0)],
    )
    parameters = ({"StatusEquals": "InProgress"}, {"StatusEquals": "Stopping"}, {"WarmPoolStatusEquals": "Available"})
    with stubbed(LISTING["SageMaker training job"]) as (lister, stub):
        for arguments, jobs in zip(parameters, answers, strict=True):
            stub.add_response("list_training_jobs", {"TrainingJobSummaries": jobs}, arguments)
        found = [(resource.name, resource.state) for resource in lister.resources()]
    assert found == [("runs", "InProgress"), ("stops", "Stopping"), ("warm", "Completed, warm pool")]
