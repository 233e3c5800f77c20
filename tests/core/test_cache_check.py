"""The check `cache`: whether an existing bucket exists, and is in the plan's region."""

from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of


def test_missing_bucket_is_reported() -> None:
    finding = finding_of("cache", FakeAccount(), cache_bucket="our-cache")
    assert (finding.outcome, finding.found) == ("fail", "bucket our-cache does not exist")
    assert finding.fix.startswith("set trn:cache_bucket to an existing bucket")


def test_bucket_of_another_region_is_refused() -> None:
    finding = finding_of("cache", FakeAccount(buckets={"our-cache": "us-east-1"}), cache_bucket="our-cache")
    assert finding.outcome == "fail"
    assert finding.fix == "set trn:cache_bucket to a bucket in us-west-2"
