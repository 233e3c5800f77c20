"""Rules for what jobs may access."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, resource_in_region, rule_decorator
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

JOB_RULES: list[Rule] = []
rule = rule_decorator(JOB_RULES)

_SERVICE, _REGION = 2, 3
_PARAMETERS = "ssm"


@rule("job_secrets", "region")
def secrets_match_region(plan: PlanValues) -> Iterator[Problem]:
    for arn in plan.jobs.secrets:
        yield from resource_in_region(plan, "job_secrets", arn, region=arn.split(":")[_REGION])


@rule("job_secrets", "egress", "vpc_id")
def secrets_match_egress(plan: PlanValues) -> Iterator[Problem]:
    """Nodes must reach the services of the secrets. Not checked in an existing VPC, whose routes are unknown here."""
    egress = plan.network.effective_egress
    if egress not in ("none", "vpc-endpoints"):
        return
    has_endpoint = egress == "vpc-endpoints"
    unreachable = [arn for arn in plan.jobs.secrets if not (has_endpoint and arn.split(":")[_SERVICE] == _PARAMETERS)]
    if unreachable:
        alternative = ", or use a SecureString parameter of Systems Manager" if has_endpoint else ""
        yield Problem(
            key="job_secrets",
            got=", ".join(unreachable),
            allowed=f"{'only parameters of Systems Manager' if has_endpoint else 'no value'} with egress {egress}",
            fix=f"set trn:egress to nat-gateway{alternative}",
        )
