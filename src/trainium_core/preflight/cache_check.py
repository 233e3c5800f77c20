"""Whether an existing bucket for the compile cache exists, and is in the plan's region."""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult


def check_cache(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the bucket; None for a new bucket."""
    bucket = plan.cache.bucket
    if bucket is None:
        return None
    region = account.storage.bucket_region(bucket)
    if region is None:
        fix = "set trn:cache_bucket to an existing bucket, or remove it for a new bucket"
        return CheckResult(outcome="fail", found=f"bucket {bucket} does not exist", fix=fix)
    if region not in (plan.region, ""):
        found = f"{bucket} is in {region}; nodes reach only buckets in {plan.region} through their S3 endpoint"
        return CheckResult(outcome="fail", found=found, fix=f"set trn:cache_bucket to a bucket in {plan.region}")
    return CheckResult(outcome="pass", found=f"{bucket} exists" + ("" if region else "; S3 did not return its region"))
