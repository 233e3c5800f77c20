"""The reads and changes of a teardown in AWS, against moto and stubbed responses."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.aws_stubs import (
    IMAGE_MANIFEST,
    REGION,
    client,
    create_bucket,
    create_queue,
    install_queues,
    put_record,
    stack_record,
    submit_job,
)
from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_core.naming import training_job_prefix
from trainium_core.stacks.containers import containers, must_be_empty
from trainium_core.stacks.description import DescribedResource, StackDescription
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.leftovers import StoredBytes, Workload
from trainium_local.resources import schemas
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.naming import CLUSTER_TAG, EMPTY_AT_DELETE_TAG, PROJECT_TAG
from trainium_runtime.node_store import NodeStore, StoredMembership
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership, Notice

pytestmark = pytest.mark.usefixtures("made_up_credentials")

OWN_CLUSTER, OTHER_CLUSTER = "trn-pilot", "trn-pilot-2"
PREFIX = training_job_prefix(OWN_CLUSTER)
NO_JOBS: dict[str, Any] = {"TrainingJobSummaries": []}
ROLE = "arn:aws:iam::123456789012:role/states"
AMI = "ami-12c6146b"  # One of the images that moto provides.


@pytest.fixture
def aws() -> Iterator[AwsTeardown]:
    with mock_aws():
        yield AwsTeardown(REGION)


def stubbed(service: str) -> tuple[AwsTeardown, Stubber]:
    aws = AwsTeardown(REGION)
    stub = Stubber(aws.client(service))
    stub.activate()
    return aws, stub


def stubbed_sagemaker() -> tuple[AwsTeardown, Stubber]:
    """Stubbed responses of SageMaker, without queues in AWS Batch."""
    aws, stub = stubbed("sagemaker")
    batch = Stubber(aws.client("batch"))
    batch.add_response("describe_job_queues", {"jobQueues": []})
    batch.activate()
    return aws, stub


def listed_jobs(status: str, *names: str) -> dict[str, Any]:
    arn = "arn:aws:sagemaker:us-west-2:123456789012:training-job/"
    return {
        "TrainingJobSummaries": [
            {
                "TrainingJobName": name,
                "TrainingJobArn": arn + name,
                "CreationTime": 0,
                "TrainingJobStatus": status,
            }
            for name in names
        ]
    }


def of_cluster(cluster: str) -> dict[str, Any]:
    return {"Tags": [{"Key": CLUSTER_TAG, "Value": cluster}]}


def test_jobs_are_found_by_name_prefix_and_by_tag() -> None:
    aws, stub = stubbed_sagemaker()
    stub.add_response("list_training_jobs", listed_jobs("InProgress", PREFIX + "a", PREFIX + "b", "x" + PREFIX + "c"))
    stub.add_response("list_tags", of_cluster(OWN_CLUSTER))
    stub.add_response("list_tags", of_cluster(OTHER_CLUSTER))
    stub.add_response("list_training_jobs", listed_jobs("Stopping", PREFIX + "d"))
    stub.add_response("list_tags", of_cluster(OWN_CLUSTER))
    stub.add_response("list_training_jobs", NO_JOBS)
    found = aws.running_workloads(engines=[SAGEMAKER.key], cluster=OWN_CLUSTER)
    assert found == [
        Workload(kind="training job", work_id=PREFIX + "a"),
        Workload(kind="training job", work_id=PREFIX + "d", stopping=True),
    ]


def test_warm_pool_of_ended_job_is_found_and_released() -> None:
    aws, stub = stubbed_sagemaker()
    warm = listed_jobs("Completed", PREFIX + "a", PREFIX + "b")
    warm["TrainingJobSummaries"][0]["WarmPoolStatus"] = {"Status": "Available"}
    for answer in (NO_JOBS, NO_JOBS, warm):
        stub.add_response("list_training_jobs", answer)
    stub.add_response("list_tags", of_cluster(OWN_CLUSTER))
    stub.add_response("list_tags", of_cluster(OWN_CLUSTER))
    (pool,) = aws.running_workloads(engines=[SAGEMAKER.key], cluster=OWN_CLUSTER)
    assert pool == Workload(kind="warm pool", work_id=PREFIX + "a")
    released = {"TrainingJobName": PREFIX + "a", "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
    stub.add_response("update_training_job", {"TrainingJobArn": "arn:aws:sagemaker:us-west-2:1:x/y"}, released)
    aws.stop(pool)
    stub.assert_no_pending_responses()


def test_queued_job_is_found_and_ended() -> None:
    install_queues()
    with mock_aws():
        aws = AwsTeardown(REGION)
        queue = create_queue(max_instances=1)
        for cluster in (OWN_CLUSTER, OTHER_CLUSTER):
            submit_job(queue, f"{cluster}--a", instances=2)
        (work,) = aws.running_workloads(engines=[SAGEMAKER.key], cluster=OWN_CLUSTER)
        assert (work.kind, work.stopping) == ("queued job", False)
        aws.stop(work)
        assert aws.running_workloads(engines=[SAGEMAKER.key], cluster=OWN_CLUSTER) == []


def test_denied_job_list_is_unknown_not_empty() -> None:
    aws, stub = stubbed_sagemaker()
    stub.add_client_error("list_training_jobs", "AccessDeniedException")
    with pytest.raises(UnavailableError, match="sagemaker:ListTrainingJobs"):
        aws.running_workloads(engines=[SAGEMAKER.key], cluster=OWN_CLUSTER)


def test_bucket_is_emptied_of_versions_markers_and_uploads(aws: AwsTeardown) -> None:
    s3 = client("s3")
    create_bucket("cache")
    s3.put_bucket_versioning(Bucket="cache", VersioningConfiguration={"Status": "Enabled"})
    for body in (b"1", b"2"):
        s3.put_object(Bucket="cache", Key="graph", Body=body)
    s3.delete_object(Bucket="cache", Key="graph")
    s3.create_multipart_upload(Bucket="cache", Key="large")
    assert [aws.delete_some("cache") for _ in range(3)] == [3, 1, 0]
    aws.delete_bucket("cache")
    assert s3.list_buckets()["Buckets"] == []


def test_bucket_with_a_delete_marker_is_not_empty(aws: AwsTeardown) -> None:
    s3 = client("s3")
    create_bucket("data")
    assert aws.is_empty("AWS::S3::Bucket", "data")
    assert aws.is_empty("AWS::S3::Bucket", "gone")
    s3.put_bucket_versioning(Bucket="data", VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket="data", Key="a")["VersionId"]
    s3.delete_object(Bucket="data", Key="a")
    s3.delete_object(Bucket="data", Key="a", VersionId=version)
    assert aws.is_empty("AWS::S3::Bucket", "data") is False


def test_repository_with_an_image_is_not_empty(aws: AwsTeardown) -> None:
    ecr = client("ecr")
    ecr.create_repository(repositoryName="team")
    assert aws.is_empty("AWS::ECR::Repository", "team")
    assert aws.is_empty("AWS::ECR::Repository", "gone")
    ecr.put_image(repositoryName="team", imageManifest=IMAGE_MANIFEST, imageTag="a")
    assert aws.is_empty("AWS::ECR::Repository", "team") is False


def test_content_of_other_types_is_not_read(aws: AwsTeardown) -> None:
    assert aws.is_empty("AWS::Backup::BackupVault", "team") is None


def test_only_buckets_without_a_tag_to_empty_them_must_be_empty() -> None:
    def bucket(*tags: str) -> dict[str, Any]:
        listed = [{"Key": tag, "Value": "true"} for tag in tags]
        return {"Type": "AWS::S3::Bucket", "Properties": {"Tags": listed} if tags else {}}

    assert must_be_empty(bucket())
    assert must_be_empty(bucket("team"))
    assert not must_be_empty(bucket("team", EMPTY_AT_DELETE_TAG))
    assert not must_be_empty(bucket("aws-cdk:auto-delete-objects"))
    assert not must_be_empty({"Type": "AWS::SNS::Topic"})


@pytest.mark.parametrize(
    ("resource_type", "setting"),
    [("AWS::ECR::Repository", "EmptyOnDelete"), ("AWS::Athena::WorkGroup", "RecursiveDeleteOption")],
)
def test_container_must_be_empty_unless_its_setting_deletes_the_content(resource_type: str, setting: str) -> None:
    def container(**properties: Any) -> dict[str, Any]:
        return {"Type": resource_type, "Properties": properties}

    assert must_be_empty({"Type": resource_type})
    assert must_be_empty(container(**{setting: False}))
    assert not must_be_empty(container(**{setting: True}))
    assert not must_be_empty(container(**{setting: "true"}))


def test_repository_that_a_function_of_the_cdk_empties_need_not_be_empty() -> None:
    tags = [{"Key": "aws-cdk:auto-delete-images", "Value": "true"}]
    assert not must_be_empty({"Type": "AWS::ECR::Repository", "Properties": {"Tags": tags}})


def test_settings_that_delete_content_exist_in_cloudformation() -> None:
    for resource_type, container in containers().items():
        schema = schemas.find(resource_type, REGION)
        assert schema is not None, resource_type
        assert container.setting is None or container.setting in schema.properties, resource_type


def test_missing_bucket_is_emptied_and_deleted_without_error(aws: AwsTeardown) -> None:
    assert aws.delete_some("gone") == 0
    aws.delete_bucket("gone")
    assert aws.bucket_tags("gone") == {}


def test_group_emptied_for_good_has_a_maximum_of_0(aws: AwsTeardown) -> None:
    ec2, autoscaling = client("ec2"), client("autoscaling")
    (subnet, *_) = ec2.describe_subnets()["Subnets"]
    ec2.create_launch_template(
        LaunchTemplateName="nodes", LaunchTemplateData={"InstanceType": "t3.micro", "ImageId": AMI}
    )
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="group",
        MinSize=1,
        MaxSize=1,
        LaunchTemplate={"LaunchTemplateName": "nodes", "Version": "$Latest"},
        VPCZoneIdentifier=subnet["SubnetId"],
    )
    for for_good, maximum in ((False, 1), (True, 0)):
        aws.empty_group("group", for_good=for_good)
        (group,) = autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        assert (group["MinSize"], group["MaxSize"], group["DesiredCapacity"]) == (0, maximum, 0)


NOTICE = Notice(kind="destroy", at="2026-11-21T12:02:00Z", reason="it goes")
OTHER_NOTICE = Notice(kind="capacity-block-end", at="2026-11-21T13:00:00Z", reason="it ends")


def deploy_with_records(membership: Membership | None) -> None:
    create_bucket("records")
    put_record(stack_record("Cluster"))
    if membership is not None:
        client("s3").put_object(Bucket="records", Key=MEMBERSHIP_KEY, Body=membership.to_json().encode())


def stored_membership() -> Membership:
    return Membership.from_json(client("s3").get_object(Bucket="records", Key=MEMBERSHIP_KEY)["Body"].read().decode())


def test_notice_keeps_members_and_other_notices(aws: AwsTeardown) -> None:
    before = Membership.of({"i-1": "10.0.0.4"}, (OTHER_NOTICE,))
    deploy_with_records(before)
    assert aws.announce("Cluster", NOTICE)
    assert aws.announce("Cluster", NOTICE)
    assert stored_membership() == Membership.of({"i-1": "10.0.0.4"}, (OTHER_NOTICE, NOTICE))
    assert aws.notices("Cluster") == (OTHER_NOTICE, NOTICE)
    aws.withdraw("Cluster", "destroy")
    assert stored_membership() == before


def test_no_notice_is_sent_without_membership_or_stack(aws: AwsTeardown) -> None:
    deploy_with_records(None)
    assert not aws.announce("Cluster", NOTICE)
    assert not aws.announce("gone", NOTICE)
    assert aws.notices("gone") == ()
    assert "Contents" not in client("s3").list_objects_v2(Bucket="records")


def test_notice_keeps_a_concurrent_change_by_the_controller(aws: AwsTeardown, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy_with_records(Membership.of({"i-1": "10.0.0.4"}))
    write, meanwhile = NodeStore.write_membership, [Membership.of({"i-1": "10.0.0.4", "i-2": "10.0.0.5"})]

    def disturbed(store: NodeStore, membership: Membership, *, replacing: StoredMembership) -> bool:
        if meanwhile:
            write(store, meanwhile.pop(), replacing=replacing)
        return write(store, membership, replacing=replacing)

    monkeypatch.setattr(NodeStore, "write_membership", disturbed)
    assert aws.announce("Cluster", NOTICE)
    assert stored_membership() == Membership.of({"i-1": "10.0.0.4", "i-2": "10.0.0.5"}, (NOTICE,))


def test_stopping_an_ended_job_succeeds() -> None:
    aws, stub = stubbed_sagemaker()
    message = "The request was rejected because the training job is in status Completed."
    stub.add_client_error("stop_training_job", "ValidationException", message)
    aws.stop(Workload(kind="training job", work_id=PREFIX + "a"))


def test_object_that_s3_does_not_delete_is_reported() -> None:
    aws, stub = stubbed("s3")
    stub.add_response("list_object_versions", {"Versions": [{"Key": "graph", "VersionId": "1"}]})
    stub.add_response("delete_objects", {"Errors": [{"Key": "graph", "Message": "it is locked"}]})
    with pytest.raises(RequestRefusedError, match="graph: it is locked"):
        aws.delete_some("cache")


def test_size_of_bucket_includes_all_versions(aws: AwsTeardown) -> None:
    s3 = client("s3")
    create_bucket("cache")
    s3.put_bucket_versioning(Bucket="cache", VersioningConfiguration={"Status": "Enabled"})
    for body in (b"123", b"45"):
        s3.put_object(Bucket="cache", Key="graph", Body=body)
    assert aws.stored("AWS::S3::Bucket", "cache") == StoredBytes(count=5)


def test_missing_bucket_or_file_system_has_no_size(aws: AwsTeardown) -> None:
    assert aws.stored("AWS::S3::Bucket", "gone") is None
    assert aws.stored("AWS::EFS::FileSystem", "fs-01234567") is None


@pytest.mark.parametrize(
    ("capacity", "stored"),
    [
        ({"StorageCapacity": 1200}, StoredBytes(count=1200 * 1024**3)),
        ({"StorageType": "INTELLIGENT_TIERING"}, StoredBytes(count=0, at_least=True)),
    ],
)
def test_size_of_fsx_file_system_is_its_capacity_if_it_has_one(capacity: dict[str, Any], stored: StoredBytes) -> None:
    aws, stub = stubbed("fsx")
    stub.add_response("describe_file_systems", {"FileSystems": [capacity]})
    assert aws.stored("AWS::FSx::FileSystem", "fs-0123456789abcdef0") == stored


@pytest.mark.parametrize(("status", "containing"), [("CREATE_COMPLETE", "mine"), ("DELETE_SKIPPED", None)])
def test_state_of_the_resource_decides_whether_a_stack_contains_it(status: str, containing: str | None) -> None:
    account, cloudformation = stubbed("cloudformation")
    entries = [stack_resource("topic", "CREATE_COMPLETE"), stack_resource("logs", status)]
    cloudformation.add_response("describe_stack_resources", {"StackResources": entries})
    assert account.stack_containing("logs") == containing


def test_stack_contains_a_resource_beyond_the_first_100() -> None:
    account, cloudformation = stubbed("cloudformation")
    entries = [stack_resource(str(number), "CREATE_COMPLETE") for number in range(100)]
    cloudformation.add_response("describe_stack_resources", {"StackResources": entries})
    assert account.stack_containing("logs") == "mine"


def stack_resource(physical_id: str, status: str) -> dict[str, Any]:
    return {
        "StackName": "mine",
        "LogicalResourceId": physical_id.title(),
        "PhysicalResourceId": physical_id,
        "ResourceType": "AWS::Logs::LogGroup",
        "ResourceStatus": status,
        "Timestamp": 0,
    }


def test_stack_has_the_project_of_its_tag(aws: AwsTeardown) -> None:
    template = '{"Resources": {"Logs": {"Type": "AWS::Logs::LogGroup"}}}'
    tags = [{"Key": CLUSTER_TAG, "Value": "mine"}, {"Key": PROJECT_TAG, "Value": "own"}]
    client("cloudformation").create_stack(StackName="Mine", TemplateBody=template, Tags=tags)
    client("cloudformation").create_stack(StackName="Bare", TemplateBody=template)
    found = aws.existing_stacks(["Mine", "Bare", "None"])
    assert [(stack.name, stack.cluster, stack.project) for stack in found] == [
        ("Mine", "mine", "own"),
        ("Bare", None, None),
    ]


def test_resource_that_is_not_created_is_not_among_the_ids() -> None:
    resources = (DescribedResource(kind="AWS::S3::Bucket", resource_id=name) for name in ("", "records"))
    stack = StackDescription(
        name="mine", stack_id="x", status="CREATE_IN_PROGRESS", cluster="mine", resources=tuple(resources)
    )
    assert stack.ids("AWS::S3::Bucket") == ("records",)
