"""The compile cache that a plan asks for: the user's own bucket, or a new one."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.compile_cache import CompileCache
from trainium_core.plan import Plan


def plan_cache(scope: Construct, construct_id: str, plan: Plan, *, encryption_key: Key | None = None) -> CompileCache:
    """The cache in the bucket of trn:cache_bucket, else in a new one. encryption_key: of a new bucket."""
    if plan.cache.bucket is not None:
        own = s3.Bucket.from_bucket_name(scope, "OwnCacheBucket", plan.cache.bucket)
        return CompileCache(scope, construct_id, bucket=own)
    return CompileCache(
        scope,
        construct_id,
        removal_policy=removal_policy(keep=plan.cache.outlives_cluster),
        expiration=Duration.days(plan.cache.expiration_days),
        encryption_key=encryption_key,
    )


def removal_policy(*, keep: bool) -> RemovalPolicy:
    """What the settings call retain, or destroy."""
    return RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
