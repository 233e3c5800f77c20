"""Buckets of a user's app: one of several is removed, and a retained one keeps its content."""

from collections.abc import Callable

import pytest
from aws_cdk import RemovalPolicies, Stack
from constructs import Construct

from tests.constructs.synth import Template, template_of
from tests.deploy.account import Account, differences
from tools.demo.inventory import Inventory
from trainium_cdk import CompileCache
from trainium_core import Plan
from trainium_local.server import Settings

STACK = "Buckets"
KEY = "neuron-compile-cache/graph.neff"


class _Caches(Stack):
    """As many caches as the plan has nodes, the first of which is retained if the plan has a tag."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id)
        caches = [CompileCache(self, f"Cache{number}") for number in range(plan.nodes)]
        if plan.tags:
            RemovalPolicies.of(caches[0]).retain(apply_to_resource_types=["AWS::S3::Bucket"])


def caches(number: int, *, retain: bool = False) -> Template:
    return template_of(_Caches, STACK, {"nodes": number, **({"tags": {"first": "kept"}} if retain else {})})


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    return start_account(Settings(iam="enforced"))


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


def filled(account: Account) -> list[str]:
    """Names of the buckets of the stack, each with a new object."""
    names = account.cluster(STACK).ids("AWS::S3::Bucket")
    for name in names:
        account.aws.client("s3").put_object(Bucket=name, Key=KEY, Body=b"compiled")
    return sorted(names)


def test_each_of_two_caches_is_removed_with_its_content(account: Account, before: Inventory) -> None:
    account.deploy(caches(2), STACK)
    both = filled(account)
    account.deploy(caches(1), STACK)
    buckets = {one["Name"] for one in account.aws.client("s3").list_buckets()["Buckets"]}
    assert len(buckets & set(both)) == 1
    account.destroy(STACK)
    assert differences(before, account.inventory()) == []


def test_cache_retained_by_the_app_keeps_its_content(account: Account, before: Inventory) -> None:
    account.deploy(caches(2, retain=True), STACK)
    both = filled(account)
    account.destroy(STACK)
    left = differences(before, account.inventory())
    (retained,) = [name for name in both if any(name in one for one in left)]
    assert any(one.endswith(f"{retained}/{KEY}") for one in left)
