"""Rules for what jobs may access."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, resource_in_region, rule_of
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

JOB_RULES: list[Rule] = []
rule = rule_of(JOB_RULES)

_SERVICE, _REGION = 2, 3
_PARAMETERS = "ssm"


@rule("job_secrets", "region")
def secrets_match_region(plan: PlanValues) -> Iterator[Problem]:
    for arn in plan.jobs.secrets:
        yield from resource_in_region(plan, "job_secrets", arn, region=arn.split(":")[_REGION])


@rule("job_secrets", "egress", "vpc_id")
def secrets_match_egress(plan: PlanValues) -> Iterator[Problem]:
    """Whether nodes can reach the services of the secrets. Unknown in an existing VPC, so not checked there."""
    egress = plan.network.effective_egress
    if egress not in ("none", "vpc-endpoints"):
        return
    reached = (_PARAMETERS,) if egress == "vpc-endpoints" else ()
    away = [arn for arn in plan.jobs.secrets if arn.split(":")[_SERVICE] not in reached]
    if away:
        others = "" if egress == "none" else ", or keep it as a SecureString parameter of Systems Manager"
        yield Problem(
            key="job_secrets",
            got=", ".join(away),
            allowed=f"with egress {egress}: {'parameters of Systems Manager' if reached else 'none'}",
            fix=f"set trn:egress to nat-gateway{others}",
        )
