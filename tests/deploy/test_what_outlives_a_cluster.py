"""The compile cache is retained if the plan says so, and nothing else is."""

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, differences, outputs
from tools.demo.inventory import Inventory
from trainium_core.naming import CACHE_PREFIX

GRAPH = f"{CACHE_PREFIX}/graph.neff"


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def cache(account: Account, before: Inventory) -> str:  # noqa: ARG001
    """The bucket of a cache with a graph in it, created without retention and then retained."""
    account.deploy(cluster_template(nodes=1))
    bucket = outputs(account.cluster())["CompileCache"].split("/")[2]
    account.aws.client("s3").put_object(Bucket=bucket, Key=GRAPH, Body=b"compiled")
    account.deploy(cluster_template(nodes=1, cache_at_destroy="retain"))
    return bucket


@pytest.fixture(scope="module")
def after_update(account: Account, cache: str) -> Inventory:  # noqa: ARG001
    return account.inventory()


@pytest.fixture(scope="module")
def after_destroy(account: Account, after_update: Inventory) -> Inventory:  # noqa: ARG001
    account.destroy()
    return account.inventory()


def test_cache_keeps_its_content_when_it_becomes_retained(cache: str, after_update: Inventory) -> None:
    assert f"{cache}/{GRAPH}" in after_update["S3 objects"]


def test_only_a_retained_cache_outlives_its_cluster(before: Inventory, cache: str, after_destroy: Inventory) -> None:
    left = differences(before, after_destroy)
    tagged = "+ anything tagged trn:cluster: arn:aws:s3:::"
    assert left == [f"+ S3 buckets: {cache}", f"+ S3 objects: {cache}/{GRAPH}", f"{tagged}{cache}"]
