"""Types whose API calls are derived from their schema: what their services show, and what the list of them claims."""

import tomllib
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import botocore.session
import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, function, template
from trainium_local.resources import schemas

TABLE: dict[str, Any] = tomllib.loads((files("trainium_local.resources") / "derived_types.toml").read_text())

KEY = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "BillingMode": "PAY_PER_REQUEST"}
DYNAMODB_TABLE = {**KEY, "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
ZONE = {"Name": "example.org"}
IMAGE = {"Fn::Sub": "{{resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64}}"}


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def one(resource_type: str, **properties: Any) -> dict[str, Any]:
    return template({"X": {"Type": resource_type, "Properties": properties}})


#: Type, properties, and how its service lists it.
SAMPLE: list[tuple[str, dict[str, Any], Callable[[EmbeddedAws], list[Any]]]] = [
    ("AWS::SQS::Queue", {}, lambda aws: aws.client("sqs").list_queues().get("QueueUrls", [])),
    ("AWS::DynamoDB::Table", DYNAMODB_TABLE, lambda aws: aws.client("dynamodb").list_tables()["TableNames"]),
    ("AWS::Kinesis::Stream", {"ShardCount": 1}, lambda aws: aws.client("kinesis").list_streams()["StreamNames"]),
    ("AWS::IAM::User", {}, lambda aws: aws.client("iam").list_users()["Users"]),
    (
        "AWS::Route53::HostedZone",
        {"Name": "e.org"},
        lambda aws: aws.client("route53").list_hosted_zones()["HostedZones"],
    ),
    ("AWS::Events::EventBus", {"Name": "b"}, lambda aws: aws.client("events").list_event_buses()["EventBuses"]),
]


@pytest.mark.parametrize(("resource_type", "properties", "listed"), SAMPLE, ids=[row[0] for row in SAMPLE])
def test_its_service_lists_it_until_the_stack_goes(
    stacks: Stacks, resource_type: str, properties: dict[str, Any], listed: Callable[[EmbeddedAws], list[Any]]
) -> None:
    before = len(listed(stacks.aws))
    name = stacks.deploy(one(resource_type, **properties))
    assert len(listed(stacks.aws)) == before + 1
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert len(listed(stacks.aws)) == before


def test_properties_reach_the_service_and_change_in_place(stacks: Stacks) -> None:
    sqs = stacks.aws.client("sqs")

    def timeout(url: str) -> str:
        return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["VisibilityTimeout"]

    name = stacks.deploy(one("AWS::SQS::Queue", VisibilityTimeout=60, Tags=[{"Key": "k", "Value": "v"}]))
    url = stacks.physical_id(name, "X")
    assert (timeout(url), sqs.list_queue_tags(QueueUrl=url)["Tags"]) == ("60", {"k": "v"})
    assert stacks.update(name, one("AWS::SQS::Queue", VisibilityTimeout=90)) == "UPDATE_COMPLETE"
    assert (stacks.physical_id(name, "X"), timeout(url)) == (url, "90")
    assert not sqs.list_queue_tags(QueueUrl=url).get("Tags")


def test_attributes_are_those_of_the_service(stacks: Stacks) -> None:
    wanted = one("AWS::SQS::Queue", QueueName="jobs")
    wanted["Outputs"] = {"Arn": {"Value": {"Fn::GetAtt": ["X", "Arn"]}}}
    name = stacks.deploy(wanted)
    assert stacks.outputs(name)["Arn"] == "arn:aws:sqs:us-west-2:123456789012:jobs"


def test_a_secret_is_generated_into_its_template(stacks: Stacks) -> None:
    generated = {"SecretStringTemplate": '{"user": "u"}', "GenerateStringKey": "password", "PasswordLength": 20}
    name = stacks.deploy(one("AWS::SecretsManager::Secret", GenerateSecretString=generated))
    arn = stacks.physical_id(name, "X")
    text = stacks.aws.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    assert '"user": "u"' in text
    assert len(text) > len('{"user": "u", "password": ""}') + 19


def test_an_instance_runs_with_what_its_template_says(stacks: Stacks) -> None:
    properties = {"InstanceType": "t3.micro", "ImageId": IMAGE, "UserData": {"Fn::Base64": "echo hello"}}
    wanted = template({"X": {"Type": "AWS::EC2::Instance", "Properties": properties}})
    wanted["Outputs"] = {"Zone": {"Value": {"Fn::GetAtt": ["X", "AvailabilityZone"]}}}
    name = stacks.deploy(wanted)
    instance_id, ec2 = stacks.physical_id(name, "X"), stacks.aws.client("ec2")
    (found,) = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
    assert stacks.outputs(name)["Zone"] == found["Placement"]["AvailabilityZone"]
    data = ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")["UserData"]["Value"]
    assert data == "ZWNobyBoZWxsbw=="
    assert stacks.delete(name) == "DELETE_COMPLETE"
    (gone,) = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
    assert gone["State"]["Name"] == "terminated"


def test_an_interface_outlives_its_attachment(stacks: Stacks) -> None:
    ec2 = stacks.aws.client("ec2")
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    resources: dict[str, Any] = {
        "N": {"Type": "AWS::EC2::NetworkInterface", "Properties": {"SubnetId": subnet}},
        "I": {
            "Type": "AWS::EC2::Instance",
            "Properties": {"InstanceType": "t3.micro", "ImageId": IMAGE, "SubnetId": subnet},
        },
    }
    ids = {"NetworkInterfaceId": {"Ref": "N"}, "InstanceId": {"Ref": "I"}, "DeviceIndex": "1"}
    attached = {"A": {"Type": "AWS::EC2::NetworkInterfaceAttachment", "Properties": ids}}
    name = stacks.deploy(template(resources | attached))
    interface = stacks.physical_id(name, "N")
    assert stacks.update(name, template(resources)) == "UPDATE_COMPLETE"
    (found,) = ec2.describe_network_interfaces(NetworkInterfaceIds=[interface])["NetworkInterfaces"]
    assert found["Status"] == "available"
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_a_queue_feeds_a_function(stacks: Stacks) -> None:
    resources = function("def handler(event, context): pass")
    mapping = {"FunctionName": {"Ref": "Fn"}, "EventSourceArn": {"Fn::GetAtt": ["Q", "Arn"]}}
    resources |= {
        "Q": {"Type": "AWS::SQS::Queue"},
        "M": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }
    name = stacks.deploy(template(resources))
    client, mapping_id = stacks.aws.client("lambda"), stacks.physical_id(name, "M")
    assert client.get_event_source_mapping(UUID=mapping_id)["EventSourceArn"].startswith("arn:aws:sqs:")


def test_the_sweep_was_made_with_the_moto_that_is_here() -> None:
    assert TABLE["moto"] == version("moto")


def test_each_row_names_calls_and_a_type_that_exist() -> None:
    session = botocore.session.get_session()
    wrong: list[str] = []
    for name, row in TABLE["types"].items():
        operations = set(session.get_service_model(row["service"]).operation_names)
        named = {value for key, value in row.items() if key.endswith("_call")}
        if not named <= operations or schemas.find(name, "us-west-2") is None:
            wrong.append(name)
    assert not wrong


def test_records_change_with_their_template_and_go_before_their_zone(stacks: Stacks) -> None:
    def wanted(address: str) -> dict[str, Any]:
        record = {"HostedZoneId": {"Ref": "Z"}, "Name": "a.example.org", "Type": "A", "TTL": "60"}
        return template(
            {
                "Z": {"Type": "AWS::Route53::HostedZone", "Properties": ZONE},
                "R": {"Type": "AWS::Route53::RecordSet", "Properties": {**record, "ResourceRecords": [address]}},
            }
        )

    def addresses(name: str) -> list[str]:
        zone, route53 = stacks.physical_id(name, "Z"), stacks.aws.client("route53")
        records = route53.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
        return [value["Value"] for one in records if one["Type"] == "A" for value in one["ResourceRecords"]]

    name = stacks.deploy(wanted("10.0.0.1"))
    assert addresses(name) == ["10.0.0.1"]
    assert stacks.update(name, wanted("10.0.0.2")) == "UPDATE_COMPLETE"
    assert addresses(name) == ["10.0.0.2"]
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_a_queue_policy_is_taken_off_with_its_resource(stacks: Stacks) -> None:
    def policy(name: str) -> str | None:
        url, sqs = stacks.physical_id(name, "Q"), stacks.aws.client("sqs")
        return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"].get("Policy")

    statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    attached = {"Type": "AWS::SQS::QueuePolicy", "Properties": {"Queues": [{"Ref": "Q"}], "PolicyDocument": document}}
    queue = {"Q": {"Type": "AWS::SQS::Queue"}}
    name = stacks.deploy(template({**queue, "P": attached}))
    assert "sqs:SendMessage" in str(policy(name))
    assert stacks.update(name, template(queue)) == "UPDATE_COMPLETE"
    assert not policy(name)
