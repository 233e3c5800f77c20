"""The nodes of a stack with AWS PCS: CloudFormation and PCS are stubs, instances and records are in moto."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.aws_stubs import REGION, client, create_bucket
from trainium_core.nodes.aws_fleets import deployed_fleets
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.nodes.report import JobBounds, NodesNotCreatedError
from trainium_wire.node_record import NodeRecord

pytestmark = pytest.mark.usefixtures("made_up_credentials")

STACK, BUCKET = "PcsStack", "the-records"
ARN = f"arn:aws:pcs:{REGION}:123456789012:cluster/pcs_cluster/computenodegroup/pcs_nodes"


def group(name: str, instance_type: str, most: int, **more: Any) -> dict[str, Any]:
    properties = {
        "Name": name,
        "InstanceConfigs": [{"InstanceType": instance_type}],
        "ScalingConfiguration": {"MinInstanceCount": 1, "MaxInstanceCount": most},
        "Tags": {"trn:cluster": "team"},
    }
    return {"Type": "AWS::PCS::ComputeNodeGroup", "Properties": properties | more}


LAUNCHED = {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}}
GUARD = {"GROUP_ID": {"Fn::GetAtt": ["Nodes", "Id"]}, "RECORDS_BUCKET": {"Ref": "Records"}, "FAILURES": "2"}
RESOURCES: dict[str, Any] = {
    "Login": group("login", "m7i.large", 1),
    "Nodes": group(
        "nodes",
        "trn1.32xlarge",
        4,
        PurchaseOption="CAPACITY_BLOCK",
        CustomLaunchTemplate={"TemplateId": {"Ref": "Template"}},
    ),
    "Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": LAUNCHED}},
    "Other": {"Type": "AWS::Lambda::Function", "Properties": {}},
    "Guard": {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": GUARD}}},
    "Records": {"Type": "AWS::S3::Bucket"},
}
FLEET = DeployedFleet(
    cluster="team",
    engine="pcs",
    group=None,
    service_group=ARN,
    records_bucket=BUCKET,
    instance_type="trn1.32xlarge",
    nodes=4,
    market="capacity-block",
    reservation_id="cr-1",
    replacements=2,
)


def test_group_of_nodes_is_found_in_the_template_without_the_login_group() -> None:
    assert deployed_fleets(RESOURCES, {"Nodes": ARN, "Records": BUCKET, "Login": "other"}) == (FLEET,)


@pytest.fixture
def account() -> Iterator[AwsNodes]:
    with mock_aws():
        yield AwsNodes(REGION)


def describe_stack(stub: Stubber, *made: tuple[str, str]) -> None:
    stack = {
        "StackName": STACK,
        "StackId": f"arn:aws:cloudformation:{REGION}:123456789012:stack/{STACK}/1",
        "CreationTime": "2026-11-21",
        "StackStatus": "CREATE_COMPLETE",
        "Outputs": [{"OutputKey": "NodeRecords", "OutputValue": BUCKET}],
    }
    listed = [
        {
            "LogicalResourceId": logical,
            "PhysicalResourceId": physical,
            "ResourceType": RESOURCES[logical]["Type"],
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": "2026-11-21",
        }
        for logical, physical in made
    ]
    stub.add_response("describe_stacks", {"Stacks": [stack]})
    stub.add_response("get_template", {"TemplateBody": json.dumps({"Resources": RESOURCES})})
    stub.add_response("list_stack_resources", {"StackResourceSummaries": listed})


def test_nodes_are_instances_with_the_tag_of_the_group(account: AwsNodes) -> None:
    ec2 = client("ec2")
    ids = dict[str, str]()
    for group_id in ("pcs_nodes", "pcs_login"):
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "aws:pcs:compute-node-group-id", "Value": group_id}]}]
        made = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=tags)
        ids[group_id] = made["Instances"][0]["InstanceId"]
    create_bucket(BUCKET)
    record = NodeRecord(instance_id=ids["pcs_nodes"], state="verified", time="2026-11-21T12:00:00Z")
    client("s3").put_object(Bucket=BUCKET, Key=f"nodes/{ids['pcs_nodes']}.json", Body=record.to_json())
    bounds = {"minInstanceCount": 1, "maxInstanceCount": 2}
    described = {"name": "nodes", "id": "pcs_nodes", "arn": ARN, "clusterId": "pcs_cluster", "status": "ACTIVE"}
    described |= {"createdAt": 0, "modifiedAt": 0, "subnetIds": ["subnet-1"], "iamInstanceProfileArn": "arn"}
    more = {"scalingConfiguration": bounds, "instanceConfigs": []}
    named = {"clusterIdentifier": "pcs_cluster", "computeNodeGroupIdentifier": "pcs_nodes"}
    with Stubber(account.client("cloudformation")) as stack, Stubber(account.client("pcs")) as pcs:
        describe_stack(stack, ("Nodes", ARN), ("Records", BUCKET))
        pcs.add_response("get_compute_node_group", {"computeNodeGroup": {**described, **more}}, named)
        found = account.nodes(STACK)
    assert found is not None
    assert [(node.instance_id, node.state) for node in found.instances] == [(ids["pcs_nodes"], "running")]
    assert (found.wanted, found.for_jobs) == (1, JobBounds(most=2, planned=4))
    assert list(found.records) == [ids["pcs_nodes"]]


def test_group_that_is_not_created_yet_is_reported(account: AwsNodes) -> None:
    with Stubber(account.client("cloudformation")) as stack:
        describe_stack(stack, ("Records", BUCKET))
        with pytest.raises(
            NodesNotCreatedError, match="group of its nodes or the bucket of their records does not exist"
        ):
            account.nodes(STACK)
