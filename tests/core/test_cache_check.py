"""The check `cache`: whether the bucket in trn:cache_bucket exists, and is in the plan's region."""

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of


def test_missing_bucket_is_reported() -> None:
    finding = finding_of("cache", FakeAccount(), cache_bucket="our-cache")
    assert (finding.outcome, finding.found) == ("fail", "bucket our-cache does not exist")
    assert finding.fix.startswith("set trn:cache_bucket to an existing bucket")


@pytest.mark.parametrize(
    ("region", "found"),
    [("us-west-2", "our-cache exists"), ("", "our-cache exists; S3 did not return its region")],
)
def test_bucket_of_the_same_or_an_unknown_region_passes(region: str, found: str) -> None:
    finding = finding_of("cache", FakeAccount(buckets={"our-cache": region}), cache_bucket="our-cache")
    assert (finding.outcome, finding.found) == ("pass", found)


def test_bucket_of_another_region_is_refused() -> None:
    finding = finding_of("cache", FakeAccount(buckets={"our-cache": "us-east-1"}), cache_bucket="our-cache")
    assert finding.outcome == "fail"
    assert finding.fix == "set trn:cache_bucket to a bucket in us-west-2"
