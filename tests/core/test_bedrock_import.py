"""A checkpoint in S3, and its import into Bedrock: moto answers for S3, and stubbed responses for Bedrock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.test_bedrock_checkpoint import not_passed, safetensors, write_checkpoint
from trainium_core.evidence.aws_bedrock import AwsModelImport, CheckpointInS3, ImportJob
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError

REGION, BUCKET = "us-west-2", "models"
JOB = f"arn:aws:bedrock:{REGION}:123456789012:model-import-job/abcdefghijkl"

pytestmark = pytest.mark.usefixtures("made_up_credentials")


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Any]:
    service = "s3"
    with mock_aws():
        client: Any = boto3.client(service, REGION)
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        for file in write_checkpoint(tmp_path).iterdir():
            client.put_object(Bucket=BUCKET, Key=f"llama/{file.name}", Body=file.read_bytes())
        client.put_object(Bucket=BUCKET, Key="llama/old/adapter_config.json", Body="{}")
        yield client


def test_checkpoint_in_s3_is_checked_like_a_folder(s3: Any) -> None:
    assert not_passed(CheckpointInS3(REGION, BUCKET, "llama/", Clients()), REGION) == []
    s3.put_object(Bucket=BUCKET, Key="llama/model.safetensors", Body=safetensors("F64")[:-1])
    s3.put_object(Bucket=BUCKET, Key="llama/config.json", Body="")
    findings = not_passed(CheckpointInS3(REGION, BUCKET, "llama/", Clients()), REGION)
    assert {("tensors", "fail"), ("architecture", "fail")} <= {*findings}


@pytest.mark.usefixtures("s3")
def test_missing_bucket_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="NoSuchBucket"):
        CheckpointInS3(REGION, "none", "llama/", Clients())


def test_import_is_tagged_and_read_and_a_denied_one_names_the_permission() -> None:
    clients = Clients()
    with Stubber(clients.client("bedrock", REGION)) as stub:
        request = {
            "jobName": "llama-1",
            "importedModelName": "llama",
            "roleArn": "arn:aws:iam::123456789012:role/import",
            "modelDataSource": {"s3DataSource": {"s3Uri": "s3://models/llama/"}},
            "importedModelTags": [{"key": "trn:cluster", "value": "trn-pilot"}],
        }
        stub.add_response("create_model_import_job", {"jobArn": JOB}, request)
        stub.add_response("get_model_import_job", {"status": "InProgress"}, {"jobIdentifier": JOB})
        stub.add_client_error("create_model_import_job", "AccessDeniedException", "no")
        bedrock = AwsModelImport(REGION, clients=clients)
        options = {"name": "llama", "job_name": "llama-1", "location": "s3://models/llama/", "cluster": "trn-pilot"}
        role = "arn:aws:iam::123456789012:role/import"
        assert bedrock.start(role=role, **options) == JOB
        assert bedrock.job(JOB) == ImportJob(arn=JOB, status="InProgress")
        with pytest.raises(RequestRefusedError, match="permission bedrock:CreateModelImportJob is missing"):
            bedrock.start(role=role, **options)
