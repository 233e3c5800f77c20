"""Rules for the compile cache."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

CACHE_RULES: list[Rule] = []
rule = rule_of(CACHE_RULES)


@rule("cache_bucket", "cache_at_destroy")
def existing_cache_bucket_is_kept(plan: PlanValues) -> Iterator[Problem]:
    if plan.cache.bucket is not None and plan.cache.at_destroy == "destroy":
        yield Problem(
            key="cache_at_destroy",
            got=plan.cache.at_destroy,
            allowed="retain with trn:cache_bucket",
            fix="remove it: an existing bucket is never deleted",
        )
