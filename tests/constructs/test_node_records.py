"""NodeRecords: where nodes write, and only write."""

from aws_cdk import aws_iam as iam

from tests.constructs.synth import Json, as_text, new_stack, synthesize
from trainium_cdk import NodeRecords


def granted() -> list[Json]:
    stack = new_stack()
    role = iam.Role(stack, "Node", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    NodeRecords(stack, "Records").grant_write(role)
    template = synthesize(stack)
    (policy,) = [
        policy["Properties"]
        for policy in template.resources("AWS::IAM::Policy").values()
        if "Node" in policy["Properties"]["Roles"][0]["Ref"]
    ]
    return policy["PolicyDocument"]["Statement"]


def test_nodes_may_write_records_and_neither_read_nor_delete_them() -> None:
    (statement,) = granted()
    assert statement["Action"] == "s3:PutObject"
    assert as_text(statement["Resource"]).endswith(".Arn}/nodes/*")


def test_the_url_is_the_prefix_in_the_bucket() -> None:
    stack = new_stack()
    records = NodeRecords(stack, "Records")
    url = as_text(stack.resolve(records.url))
    assert url == f"s3://${{{synthesize(stack).logical_id('AWS::S3::Bucket')}}}/{records.prefix}"


def test_records_go_with_their_stack() -> None:
    stack = new_stack()
    NodeRecords(stack, "Records")
    template = synthesize(stack)
    (bucket,) = template.resources("AWS::S3::Bucket").values()
    assert bucket["DeletionPolicy"] == "Delete"
    assert len(template.resources("Custom::TrnBucketContent")) == 1
