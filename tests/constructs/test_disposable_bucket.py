"""DisposableBucket: emptied and deleted with its stack unless retained."""

from functools import cache

from aws_cdk import Duration, RemovalPolicies, RemovalPolicy
from aws_cdk import aws_s3 as s3

from tests.constructs.synth import Json, Template, new_stack, statements, synthesize
from trainium_cdk.storage.disposable_bucket import DisposableBucket
from trainium_runtime.naming import EMPTY_AT_DELETE_TAG

CONTENT = "Custom::TrnBucketContent"


@cache
def bucket(*, retain: bool = False) -> Template:
    stack = new_stack()
    rule = s3.LifecycleRule(prefix="old/", expiration=Duration.days(7))
    policy = RemovalPolicy.RETAIN if retain else RemovalPolicy.DESTROY
    DisposableBucket(stack, "Kept" if retain else "Gone", removal_policy=policy, lifecycle_rules=[rule])
    return synthesize(stack)


def tags(template: Template) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in template.properties("AWS::S3::Bucket").get("Tags", [])}


def test_destroyed_bucket_is_emptied_first() -> None:
    name = bucket().logical_id("AWS::S3::Bucket")
    (content,) = bucket().resources(CONTENT).values()
    assert content["Properties"]["BucketName"] == {"Ref": name}
    assert name in content["DependsOn"]


def test_emptier_has_permissions_until_the_bucket_is_empty() -> None:
    (content,) = bucket().resources(CONTENT).values()
    (emptier,) = bucket().resources("AWS::Lambda::Function")
    assert {
        emptier,
        bucket().logical_id("AWS::IAM::Policy"),
        bucket().logical_id("AWS::S3::BucketPolicy"),
        bucket().logical_id("AWS::Logs::LogGroup"),
    } <= set(content["DependsOn"])
    assert content["Properties"]["ServiceToken"] == {"Fn::GetAtt": [emptier, "Arn"]}


def test_bucket_policy_allows_the_emptier() -> None:
    """An update that removes the bucket would remove permissions in a policy of the function too early."""
    arn = {"Fn::GetAtt": [bucket().logical_id("AWS::S3::Bucket"), "Arn"]}
    role = {"Fn::GetAtt": [bucket().logical_id("AWS::IAM::Role"), "Arn"]}
    document = bucket().properties("AWS::S3::BucketPolicy")["PolicyDocument"]
    assert [s for s in document["Statement"] if s["Effect"] == "Allow"] == [
        {"Effect": "Allow", "Action": actions, "Principal": {"AWS": role}, "Resource": resource}
        for actions, resource in (
            (["s3:GetBucketTagging", "s3:ListBucketVersions"], arn),
            (["s3:DeleteObject", "s3:DeleteObjectVersion"], {"Fn::Join": ["", [arn, "/*"]]}),
        )
    ]
    assert not [s for s in statements(bucket()) if "s3:" in str(s["Action"])]


def test_bucket_retained_by_an_aspect_is_not_emptied() -> None:
    stack = new_stack()
    DisposableBucket(stack, "Kept")
    RemovalPolicies.of(stack).retain(apply_to_resource_types=["AWS::S3::Bucket"])
    template = synthesize(stack)
    assert tags(template)[EMPTY_AT_DELETE_TAG] == "false"
    assert tags(bucket())[EMPTY_AT_DELETE_TAG] == "true"


def test_retained_bucket_has_no_emptier() -> None:
    assert {resource["Type"] for resource in bucket(retain=True).resources().values()} == {
        "AWS::S3::Bucket",
        "AWS::S3::BucketPolicy",
    }
    assert EMPTY_AT_DELETE_TAG not in tags(bucket(retain=True))


def test_buckets_of_a_stack_share_one_emptier() -> None:
    stack = new_stack()
    for name in ("One", "Two"):
        DisposableBucket(stack, name)
    template = synthesize(stack)
    tokens: list[Json] = [content["Properties"]["ServiceToken"] for content in template.resources(CONTENT).values()]
    assert len(tokens) == 2
    assert tokens[0] == tokens[1] == {"Fn::GetAtt": [template.logical_id("AWS::Lambda::Function"), "Arn"]}
