"""The nodes of a stack with AWS PCS: PCS is a stub, instances and records are in moto."""

from collections.abc import Iterator

import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.core.aws_stubs import REGION, client, create_bucket, put_record, stack_record
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import JobBounds, NodesNotCreatedError
from trainium_runtime.errors import UnavailableError
from trainium_wire.node_record import NodeRecord

pytestmark = pytest.mark.usefixtures("made_up_credentials")

STACK, BUCKET = "PcsStack", "the-records"
RECORD = stack_record(
    STACK,
    cluster="team",
    engine="pcs",
    group=None,
    bucket=BUCKET,
    settings={"instance_type": "trn1.32xlarge", "nodes": 4},
)
ARN = f"arn:aws:pcs:{REGION}:123456789012:cluster/pcs_cluster/computenodegroup/pcs_nodes"


@pytest.fixture
def account() -> Iterator[AwsNodes]:
    with mock_aws():
        yield AwsNodes(REGION)


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
    named = {"clusterIdentifier": "team", "computeNodeGroupIdentifier": "nodes"}
    put_record(RECORD)
    with Stubber(account.client("pcs")) as pcs:
        pcs.add_response("get_compute_node_group", {"computeNodeGroup": {**described, **more}}, named)
        found = account.nodes(STACK)
    assert found is not None
    assert [(node.instance_id, node.state) for node in found.instances] == [(ids["pcs_nodes"], "running")]
    assert (found.wanted, found.for_jobs) == (1, JobBounds(most=2, planned=4))
    assert list(found.records) == [ids["pcs_nodes"]]


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        ("CREATE_IN_PROGRESS", NodesNotCreatedError, "is in CREATE_IN_PROGRESS: the group of its nodes"),
        ("CREATE_COMPLETE", UnavailableError, "group of team does not exist, although the stack has one"),
    ],
)
def test_missing_group_is_reported(account: AwsNodes, status: str, error: type[UnavailableError], message: str) -> None:
    put_record(RECORD)
    stack = {"StackName": STACK, "StackId": "id", "CreationTime": "2026-11-21", "StackStatus": status}
    with Stubber(account.client("cloudformation")) as stacks, Stubber(account.client("pcs")) as pcs:
        pcs.add_client_error("get_compute_node_group", "ResourceNotFoundException")
        stacks.add_response("describe_stacks", {"Stacks": [stack]})
        with pytest.raises(error, match=message):
            account.nodes(STACK)
