"""NodeRecords: where nodes write, and what they may read there."""

from functools import cache

from aws_cdk import aws_iam as iam

from tests.constructs.synth import Json, Template, granted, new_stack, synthesize
from trainium_cdk.fleet.node_records import NodeRecords


@cache
def records(*, internode_ssh: bool = False, internode_tests: bool = False) -> Template:
    stack = new_stack()
    role = iam.Role(stack, "Node", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    NodeRecords(stack, "Records").grant_node(role, internode_ssh=internode_ssh, internode_tests=internode_tests)
    return synthesize(stack)


def allowed(*, internode_ssh: bool = False, internode_tests: bool = False) -> set[tuple[str, str]]:
    """What the nodes' role may do, with the bucket's own name left out."""
    template = records(internode_ssh=internode_ssh, internode_tests=internode_tests)
    (policy,) = [
        policy["Properties"]
        for policy in template.resources("AWS::IAM::Policy").values()
        if "Node" in policy["Properties"]["Roles"][0]["Ref"]
    ]
    bucket = f"${{{template.logical_id('AWS::S3::Bucket')}.Arn}}"
    found = granted(policy["PolicyDocument"]["Statement"])
    return {(action, resource.removeprefix(bucket)) for action, resource in found}


def bucket() -> Json:
    return records().properties("AWS::S3::Bucket")


def test_nodes_write_records_and_results_but_no_submitted_job() -> None:
    assert allowed() == {
        ("s3:PutObject", "/nodes/*"),
        ("s3:PutObject", "/logs/*"),
        ("s3:PutObject", "/usage/*"),
        ("s3:GetObject", "/cluster.json"),
        ("s3:GetObject", "/job.json"),
        ("s3:GetObject", "/jobs/*"),
        ("s3:PutObject", "/jobs/*/attempts/*"),
        ("s3:PutObject", "/jobs/*/checkpoints/*"),
        ("s3:PutObject", "/jobs/*/outputs/*"),
        ("s3:PutObject", "/jobs/*/end.json"),
        ("s3:ListBucket", ""),
    }


def test_nodes_that_log_on_to_each_other_exchange_keys() -> None:
    assert allowed(internode_ssh=True) - allowed() == {("s3:PutObject", "/ssh/*"), ("s3:GetObject", "/ssh/*")}


def test_nodes_that_are_tested_together_read_what_the_others_came_to() -> None:
    added = allowed(internode_tests=True) - allowed()
    assert added == {("s3:PutObject", "/internode/*"), ("s3:GetObject", "/internode/*")}


def test_logs_and_jobs_expire_and_records_do_not() -> None:
    rules = bucket()["LifecycleConfiguration"]["Rules"]
    assert {(rule["Prefix"], rule["ExpirationInDays"]) for rule in rules} == {("logs/", 30), ("jobs/", 90)}
