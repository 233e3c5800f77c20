"""Whether the policies of existing VPC endpoints allow the nodes' requests.

Only statements for every caller and without conditions have a known effect. Others may or may not apply to the nodes.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

from trainium_core.aws.network import VpcEndpoint
from trainium_core.permissions.roles import physical_name_prefix
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult

Statement = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Need:
    """An action that the nodes need, on resources.

    Attributes:
        action: Name of the action.
        resource: ARN, in which `*` stands for parts that are unknown before the deployment.
    """

    action: str
    resource: str


def s3_needs(plan: Plan) -> Sequence[Need]:
    """The S3 requests of nodes to the stacks' buckets, the CDK's assets and an existing cache bucket.

    Requests of jobs to the buckets of trn:job_inputs and trn:job_checkpoints are not included.
    """
    buckets = [f"{physical_name_prefix(plan.stack_names[key]).lower()}-*" for key in plan.stacks]
    buckets += [plan.cache.bucket] if plan.cache.bucket else []
    own = [
        Need(action=action, resource=f"arn:aws:s3:::{bucket}{objects}")
        for bucket in buckets
        for action, objects in (("s3:GetObject", "/*"), ("s3:PutObject", "/*"), ("s3:ListBucket", ""))
        if action != "s3:PutObject" or bucket != plan.cache.bucket or plan.cache.access == "read-write"
    ]
    return [*own, Need(action="s3:GetObject", resource=f"arn:aws:s3:::cdk-*-assets-*-{plan.region}/*")]


_SESSION_NEEDS = {
    "ssm": [Need(action="ssm:UpdateInstanceInformation", resource="*")],
    "ssmmessages": [
        Need(action=f"ssmmessages:{action}", resource="*")
        for action in ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel")
    ],
}
_UNRESTRICTED = CheckResult(outcome="pass", found="no existing endpoint restricts requests")


def check_s3_policies(plan: Plan, endpoints: Iterable[VpcEndpoint]) -> CheckResult:
    """Check the policies of the endpoints on the nodes' route to S3."""
    return worst_result([_judge(endpoint, s3_needs(plan)) for endpoint in endpoints] or [_UNRESTRICTED])


def check_session_policies(endpoints: Iterable[VpcEndpoint]) -> CheckResult:
    """Check the policies of Session Manager's endpoints. Sessions are optional, so the worst outcome is a warning."""
    worst = worst_result(
        [_judge(endpoint, _SESSION_NEEDS[endpoint.service]) for endpoint in endpoints] or [_UNRESTRICTED]
    )
    if worst.outcome == "pass":
        return worst
    return CheckResult(outcome="warn", found=f"sessions may not work: {worst.found}", fix=worst.fix)


def _judge(endpoint: VpcEndpoint, needs: Sequence[Need]) -> CheckResult:
    name = f"the policy of the {endpoint.kind} endpoint of {endpoint.service}"
    resources = dict.fromkeys(need.resource for need in needs)
    fix = "change the policy to allow " + " and ".join(
        f"{', '.join(sorted(need.action for need in needs if need.resource == resource))} on {resource}"
        for resource in resources
    )
    try:
        statements: Sequence[Statement] = _as_list(json.loads(endpoint.policy or "")["Statement"])
    except (ValueError, KeyError, TypeError):
        return CheckResult(outcome="unknown", found=f"{name} cannot be read", fix=fix)
    verdicts = {need: _verdict(statements, need) for need in needs}
    if refused := [need for need in needs if verdicts[need] == "refused"]:
        return CheckResult(outcome="fail", found=f"{name} does not allow {_first(refused)}", fix=fix)
    if unclear := [need for need in needs if verdicts[need] == "unknown"]:
        found = f"whether {name} allows {_first(unclear)} depends on its conditions, principals or resources"
        return CheckResult(outcome="unknown", found=found, fix=fix)
    return CheckResult(outcome="pass", found=f"{name} allows the nodes' requests")


def _first(needs: Sequence[Need]) -> str:
    return f"{needs[0].action} on {needs[0].resource}{' and more' if needs[1:] else ''}"


def _verdict(statements: Iterable[Statement], need: Need) -> Literal["allowed", "refused", "unknown"]:
    """Refused only if no statement can allow it, or if a statement denies it to every caller."""
    relevant = [statement for statement in statements if _may_concern(statement, need)]
    allowing = [statement for statement in relevant if statement.get("Effect") == "Allow"]
    denying = [statement for statement in relevant if statement.get("Effect") == "Deny"]
    if not allowing or any(_applies_to_every_caller(statement, need) for statement in denying):
        return "refused"
    if denying or not any(_applies_to_every_caller(statement, need) for statement in allowing):
        return "unknown"
    return "allowed"


def _applies_to_every_caller(statement: Statement, need: Need) -> bool:
    """Whether a statement about the action covers all resources of the need, for every caller."""
    return (
        not statement.get("Condition")
        and not {"NotAction", "NotResource", "NotPrincipal"} & statement.keys()
        and statement.get("Principal") in ("*", {"AWS": "*"}, {"AWS": ["*"]})
        and any(fnmatchcase(need.resource, pattern) for pattern in _as_list(statement.get("Resource")))
    )


def _may_concern(statement: Statement, need: Need) -> bool:
    if "NotAction" in statement or "NotResource" in statement:
        return True
    actions = [str(action).lower() for action in _as_list(statement.get("Action"))]
    if not any(fnmatchcase(need.action.lower(), action) for action in actions):
        return False
    return any(_may_overlap(str(pattern), need.resource) for pattern in _as_list(statement.get("Resource")))


def _may_overlap(pattern: str, other: str) -> bool:
    """Whether two patterns may match the same text. Compares what is before the first and after the last wildcard."""
    parts = [re.split(r"[*?]", text) for text in (pattern, other)]
    if all(len(texts) == 1 for texts in parts):
        return pattern == other
    start = min(len(texts[0]) for texts in parts)
    end = min(len(texts[-1]) for texts in parts)
    return pattern[:start] == other[:start] and (not end or pattern[-end:] == other[-end:])


def _as_list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else [value]
