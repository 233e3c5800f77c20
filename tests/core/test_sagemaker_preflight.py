"""The checks of a training job: what each finds, and that what is unknown never passes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.fake_sagemaker_account import OF_ALL_JOBS, TRUSTED, FakeSageMakerAccount, instances, quotas
from tests.core.jobs import JOB, TRAINING_PLAN
from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.job_checks.preflight import JOB_CHECKS, job_preflight
from trainium_core.preflight.finding import Finding, verdict

PLAN = from_settings(nodes=2)


def findings(account: FakeSageMakerAccount, **changes: Any) -> dict[str, Finding]:
    return {finding.check: finding for finding in job_preflight(PLAN, replace(JOB, **changes), account)}


def found(check: str, account: FakeSageMakerAccount | None = None, **changes: Any) -> tuple[str, str]:
    finding = findings(account or FakeSageMakerAccount(), **changes)[check]
    return finding.outcome, f"{finding.found} {finding.fix}"


def test_an_account_that_has_everything_is_ready() -> None:
    results = findings(FakeSageMakerAccount())
    assert {name: finding.outcome for name, finding in results.items()} == dict.fromkeys(JOB_CHECKS, "pass")
    assert verdict(results.values()) == "ready"


@pytest.mark.parametrize(
    ("question", "check"),
    [("identity", "identity"), ("quota", "quota"), ("image", "image"), ("role", "role"), ("simulation", "role")],
)
def test_no_answer_is_unknown_and_never_ready(question: str, check: str) -> None:
    results = findings(FakeSageMakerAccount(unavailable={question}))
    assert results[check].outcome == "unknown"
    assert verdict(results.values()) != "ready"


def test_buckets_that_may_not_be_read_are_unknown() -> None:
    assert found("buckets", FakeSageMakerAccount(unavailable={"buckets"}))[0] == "unknown"


def test_too_few_instances_of_the_quota_fail_with_what_to_request() -> None:
    outcome, message = found("quota", FakeSageMakerAccount(sagemaker=quotas(instances(1), *OF_ALL_JOBS)))
    assert outcome == "fail"
    assert "ask Service Quotas for 2 of L-00000001" in message
    assert "set trn:nodes to 1" in message


def test_a_quota_that_sagemaker_does_not_list_is_unknown() -> None:
    outcome, message = found("quota", FakeSageMakerAccount(sagemaker=quotas(*OF_ALL_JOBS)))
    assert outcome == "unknown"
    assert "ml.trn1.32xlarge for training job usage" in message


def test_spot_has_a_quota_of_its_own() -> None:
    account = FakeSageMakerAccount(sagemaker=quotas(instances(4), *OF_ALL_JOBS))
    outcome, message = found("quota", account, spot=True)
    assert outcome == "unknown"
    assert "ml.trn1.32xlarge for spot training job usage" in message


def test_a_warm_pool_has_a_quota_of_its_own() -> None:
    none = instances(0, "training warm pool usage")
    account = FakeSageMakerAccount(sagemaker={**quotas(instances(4), *OF_ALL_JOBS), none.name: none})
    outcome, message = found("quota", account, warm_pool_minutes=30)
    assert outcome == "fail"
    assert "training warm pool usage" in message


def test_a_training_plan_needs_no_quota_of_its_own() -> None:
    account = FakeSageMakerAccount(sagemaker=quotas(*OF_ALL_JOBS))
    assert found("quota", account, training_plan_arn=TRAINING_PLAN)[0] == "pass"


def test_a_job_that_may_run_longer_than_the_quota_fails() -> None:
    outcome, message = found("quota", max_hours=121)
    assert outcome == "fail"
    assert "--max-hours 120 or less" in message


def test_a_volume_over_the_quota_of_volumes_is_reported_where_it_may_not_count() -> None:
    results = job_preflight(from_settings(root_volume_gib=1025), JOB, FakeSageMakerAccount())
    (quota,) = [finding for finding in results if finding.check == "quota"]
    assert (quota.outcome, quota.needed) == ("warn", "1025 GB")
    assert "no source says whether it counts" in quota.found
    assert quota.fix == "set trn:root_volume_gib to 1024 or less"


def test_an_image_that_is_not_there_fails() -> None:
    assert found("image", FakeSageMakerAccount(image_is_there=False))[0] == "fail"


def test_an_image_can_be_named_by_its_digest() -> None:
    digest = f"763104351884.dkr.ecr.us-west-2.amazonaws.com/x@sha256:{'0' * 64}"
    assert found("image", image=digest)[0] == "pass"


@pytest.mark.parametrize(
    ("role", "says"),
    [
        (None, "there is no role trn-training"),
        (replace(TRUSTED, arn="arn:aws:iam::123456789012:role/x/trn-training"), "not arn:aws:iam"),
        (replace(TRUSTED, trusted_services={"ec2.amazonaws.com"}), "does not trust sagemaker.amazonaws.com"),
    ],
)
def test_a_role_that_sagemaker_cannot_take_fails(role: Any, says: str) -> None:
    outcome, message = found("role", FakeSageMakerAccount(found_role=role))
    assert outcome == "fail"
    assert says in message


@pytest.mark.parametrize(
    ("resource", "action"),
    [
        ("arn:aws:s3:::trn-bucket/source/0123456789abcdef/*", "s3:GetObject"),
        ("arn:aws:s3:::trn-bucket/output/*", "s3:PutObject"),
        ("arn:aws:s3:::trn-bucket/checkpoints/trn-pilot--train/*", "s3:GetObject"),
        ("arn:aws:s3:::trn-bucket/neuron-compile-cache/*", "s3:PutObject"),
        ("arn:aws:s3:::data-bucket/set/*", "s3:GetObject"),
        ("arn:aws:ecr:us-west-2:763104351884:repository/pytorch-training-neuronx", "ecr:BatchGetImage"),
    ],
)
def test_a_role_must_reach_each_of_the_jobs_places(resource: str, action: str) -> None:
    account = FakeSageMakerAccount(denied={resource: [action]})
    outcome, message = found("role", account, inputs={"train": "s3://data-bucket/set"})
    assert outcome == "fail"
    assert f"allow {action} on {resource}" in message


def test_a_bucket_that_is_not_there_fails() -> None:
    outcome, message = found("buckets", FakeSageMakerAccount(buckets={}))
    assert outcome == "fail"
    assert "there is no bucket trn-bucket" in message


def test_a_bucket_in_another_region_fails() -> None:
    outcome, message = found("buckets", FakeSageMakerAccount(buckets={"trn-bucket": "us-east-1"}))
    assert outcome == "fail"
    assert "trn-bucket is in us-east-1" in message


def test_the_cost_is_reported_by_the_hour_and_at_most() -> None:
    outcome, message = found("cost", max_hours=10, warm_pool_minutes=30)
    assert outcome == "pass"
    assert "per hour: $2.00; at most, in 10.5 h: $21.00" in message


def test_a_price_that_is_unknown_is_a_warning_and_no_amount() -> None:
    outcome, message = found("cost", FakeSageMakerAccount(unavailable={"price"}))
    assert outcome == "warn"
    assert "not known, 1 price unknown" in message


def test_a_suppressed_check_is_shown_and_does_not_count() -> None:
    results = job_preflight(PLAN, JOB, FakeSageMakerAccount(unavailable={"role"}), suppressed={"role"})
    assert {finding.check for finding in results if finding.suppressed} == {"role"}
    assert verdict(results) == "ready"
