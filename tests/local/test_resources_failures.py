"""Types without an adapter, values that the schema does not allow, and changes that no call can make."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, template


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def one(resource_type: str, **properties: Any) -> dict[str, Any]:
    return template({"X": {"Type": resource_type, "Properties": properties}})


TABLE = {
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class TestTypesWithoutAdapter:
    """Types that moto's own models provision, and types that are refused."""

    def test_moto_creates_and_deletes_the_resource(self, stacks: Stacks) -> None:
        wanted = one("AWS::DynamoDB::Table", **TABLE)
        name = stacks.deploy({**wanted, "Outputs": {"Arn": {"Value": {"Fn::GetAtt": ["X", "Arn"]}}}})
        tables = stacks.aws.client("dynamodb")
        physical_id = stacks.physical_id(name, "X")
        assert tables.describe_table(TableName=physical_id)["Table"]["TableArn"] == stacks.outputs(name)["Arn"]
        assert stacks.delete(name) == "DELETE_COMPLETE"
        assert physical_id not in tables.list_tables()["TableNames"]

    def test_error_of_moto_fails_the_resource(self, stacks: Stacks) -> None:
        failed = stacks.create(one("AWS::DynamoDB::Table", **TABLE, TableName="same"))
        again = stacks.create(one("AWS::DynamoDB::Table", **TABLE, TableName="same"))
        assert stacks.settled(failed) == "CREATE_COMPLETE"
        assert stacks.settled(again) == "ROLLBACK_COMPLETE"
        assert "Table already exists: same" in stacks.failures(again)
        assert stacks.delete(failed) == "DELETE_COMPLETE"

    def test_exception_in_model_fails_the_resource(self, stacks: Stacks) -> None:
        name = stacks.create(one("AWS::SageMaker::Model"))
        assert stacks.settled(name) == "ROLLBACK_COMPLETE"
        assert "The embedded AWS failed: KeyError: 'ExecutionRoleArn'" in stacks.failures(name)

    def test_unsupported_type_is_refused_by_name(self, stacks: Stacks) -> None:
        with pytest.raises(ClientError, match=r"not support .* \[AWS::Batch::ComputeEnvironment\]. `trn local status"):
            stacks.create(one("AWS::Batch::ComputeEnvironment", Name="x"))

    def test_type_that_the_region_lacks_is_refused(self, stacks: Stacks) -> None:
        elsewhere = stacks.aws.client("cloudformation", "ap-southeast-4")
        wanted = json.dumps(one("AWS::AppRunner::AutoScalingConfiguration"))
        with pytest.raises(ClientError, match="Unrecognized resource types"):
            elsewhere.create_stack(StackName="x", TemplateBody=wanted)


def test_value_outside_the_schema_fails_the_resource(stacks: Stacks) -> None:
    name = stacks.create(one("AWS::Logs::LogGroup", RetentionInDays=1, LogGroupName="x", LogGroupClass="CHEAP"))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "#/LogGroupClass: 'CHEAP' is not one of ['STANDARD'" in stacks.failures(name)


def test_lifecycle_rule_that_would_be_dropped_fails_the_bucket(stacks: Stacks) -> None:
    rule = {"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 9}, "ObjectSizeGreaterThan": "1"}
    name = stacks.create(one("AWS::S3::Bucket", LifecycleConfiguration={"Rules": [rule]}))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "does not support ObjectSizeGreaterThan of a lifecycle rule" in stacks.failures(name)


def test_change_without_a_call_fails_the_update(stacks: Stacks) -> None:
    name = stacks.deploy(one("AWS::Logs::LogGroup", LogGroupClass="STANDARD"))
    changed = one("AWS::Logs::LogGroup", LogGroupClass="INFREQUENT_ACCESS")
    assert stacks.update(name, changed) == "UPDATE_ROLLBACK_COMPLETE"
    assert "cannot change [LogGroupClass] of an existing AWS::Logs::LogGroup" in stacks.failures(name)
