"""CompileCache: a new or existing bucket, and the permissions of nodes in it."""

import json
from functools import cache
from typing import Any

import pytest
from aws_cdk import Environment, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from tests.constructs.synth import REGION, Template, as_list, as_text, new_app, new_stack, statements, synthesize
from trainium_cdk import CompileCache, PropsError
from trainium_cdk.storage.compile_cache import allow_cache


@cache
def new_cache(**arguments: Any) -> Template:
    stack = new_stack()
    CompileCache(stack, "Cache", **arguments)
    return synthesize(stack)


def cache_with_role(*, own_bucket: bool) -> tuple[str, Template]:
    """The URL of a cache, and the template with a role that may use it."""
    stack = new_stack()
    bucket = s3.Bucket.from_bucket_name(stack, "Own", "my-cache") if own_bucket else None
    cache = CompileCache(stack, "Cache", bucket=bucket, removal_policy=None if own_bucket else RemovalPolicy.RETAIN)
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    cache.grant_read_write(role)
    return as_text(stack.resolve(cache.url)), synthesize(stack)


def rules(template: Template) -> list[Any]:
    return template.properties("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]


def test_graphs_expire_after_90_days_and_incomplete_uploads_after_one() -> None:
    assert rules(new_cache()) == [
        {"Status": "Enabled", "Prefix": "neuron-compile-cache/neuronx-cc-", "ExpirationInDays": 90},
        {
            "Status": "Enabled",
            "Prefix": "neuron-compile-cache/",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        },
    ]


def test_existing_bucket_is_used_and_none_created() -> None:
    url, template = cache_with_role(own_bucket=True)
    assert url == "s3://my-cache/neuron-compile-cache"
    assert not template.resources("AWS::S3::Bucket")
    assert {as_text(statement["Resource"]) for statement in statements(template)} == {
        "arn:aws:s3:::my-cache",
        "arn:aws:s3:::my-cache/neuron-compile-cache/*",
        "arn:aws:s3:::my-cache/neuron-compile-cache/direct/*",
    }


def granted(template: Template) -> set[tuple[str, str]]:
    """Actions, and the resources in the bucket on which they are allowed."""
    return {
        (action, as_text(statement["Resource"]).partition(".Arn}")[2])
        for statement in statements(template)
        for action in as_list(statement["Action"])
    }


def test_nodes_access_graphs_and_delete_only_files_of_pytorch_xla() -> None:
    template = cache_with_role(own_bucket=False)[1]
    assert granted(template) == {
        ("s3:GetObject", "/neuron-compile-cache/*"),
        ("s3:PutObject", "/neuron-compile-cache/*"),
        ("s3:DeleteObject", "/neuron-compile-cache/direct/*"),
        ("s3:ListBucket", ""),
    }
    (listing,) = [s for s in statements(template) if "s3:ListBucket" in as_list(s["Action"])]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["neuron-compile-cache", "neuron-compile-cache/*"]}}


def test_nodes_with_read_only_cache_may_only_read() -> None:
    stack = new_stack()
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    cache = CompileCache.from_compile_cache_attributes(stack, "Cache", bucket_name="shared", read_only=True)
    allow_cache(cache, role)
    assert {action for action, _ in granted(synthesize(stack))} == {"s3:GetObject", "s3:ListBucket"}


def test_new_cache_cannot_be_read_only() -> None:
    with pytest.raises(PropsError, match="would stay empty"):
        CompileCache(new_stack(), "Cache", read_only=True)


def test_maintenance_may_delete_but_not_write_graphs() -> None:
    stack = new_stack()
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    CompileCache(stack, "Cache", removal_policy=RemovalPolicy.RETAIN).grant_maintenance(role)
    assert granted(synthesize(stack)) == {
        ("s3:GetObject", "/neuron-compile-cache/*"),
        ("s3:DeleteObject", "/neuron-compile-cache/*"),
        ("s3:ListBucket", ""),
    }


OTHER_ACCOUNT = "444455556666"


def reads_from_another_account(*, new_bucket: bool) -> tuple[Template, list[str]]:
    """A template in which a role of another account reads a cache, and the warnings of the cache."""
    stack = Stack(new_app(), "Stack", env=Environment(region=REGION, account="111122223333"))
    bucket = None if new_bucket else s3.Bucket.from_bucket_name(stack, "Own", "my-cache")
    cache = CompileCache(stack, "Cache", bucket=bucket)
    cache.grant_read(iam.Role.from_role_arn(stack, "Reader", f"arn:aws:iam::{OTHER_ACCOUNT}:role/reader"))
    return synthesize(stack), [entry.data for entry in cache.node.metadata if entry.type == "aws:cdk:warning"]


def test_role_of_another_account_is_granted_only_by_bucket_policy() -> None:
    template, warnings = reads_from_another_account(new_bucket=True)
    assert OTHER_ACCOUNT in json.dumps(template.properties("AWS::S3::BucketPolicy"))
    assert not [name for name in template.resources("AWS::IAM::Policy") if name.startswith("Reader")]
    assert warnings == []


def test_grant_that_the_bucket_owner_must_complete_is_a_warning() -> None:
    template, (warning,) = reads_from_another_account(new_bucket=False)
    assert not template.resources("AWS::S3::BucketPolicy")
    assert warning.startswith("the policy of the imported bucket Stack/Own is not changed here")
