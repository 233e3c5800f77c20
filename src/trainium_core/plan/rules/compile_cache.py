"""Rules for the compile cache."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

CACHE_RULES: list[Rule] = []
rule = rule_decorator(CACHE_RULES)


@rule("cache_bucket", "cache_at_destroy")
def existing_cache_bucket_is_kept(plan: PlanValues) -> Iterator[Problem]:
    if plan.cache.bucket is not None and plan.cache.at_destroy == "destroy":
        yield Problem(
            key="cache_at_destroy",
            got=plan.cache.at_destroy,
            allowed="retain with trn:cache_bucket",
            fix="remove it: an existing bucket is never deleted",
        )


@rule("cache_bucket", "cache_expiration_days")
def existing_cache_bucket_keeps_its_expiration(plan: PlanValues) -> Iterator[Problem]:
    days = plan.cache.expiration_days
    if plan.cache.bucket is not None and days != SETTINGS["cache_expiration_days"].default:
        fix = "remove it: an existing bucket keeps its lifecycle rules"
        yield Problem(key="cache_expiration_days", got=days, allowed="no value with trn:cache_bucket", fix=fix)


@rule("cache_access", "cache_bucket", "stacks")
def read_only_cache_has_another_writer(plan: PlanValues) -> Iterator[Problem]:
    if plan.cache.access == "read-write":
        return
    if plan.cache.bucket is None:
        fix = "set trn:cache_bucket to a bucket that another cluster writes to, or remove it"
        yield Problem(key="cache_access", got="read", allowed="read-write for a new bucket", fix=fix)
    writers = sorted({*plan.stacks} - {"cluster"})
    if writers:
        why = f"read-write with {', '.join(writers)} in trn:stacks: PyTorch/XLA itself writes to the bucket"
        yield Problem(
            key="cache_access",
            got="read",
            allowed=why,
            fix="remove it, or deploy these stacks from another plan with another bucket",
        )
