"""Whether IAM's simulation allows a principal the actions of a `trn permissions` role."""

import re
from collections.abc import Iterator, Sequence
from itertools import product

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.simulation import Calls, Denial
from trainium_core.permissions.roles import CLOUDFORMATION, policies, role_scope
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult

PRINCIPAL = re.compile(r"arn:(?P<partition>aws[a-z-]*):iam::(?P<account>[0-9]{12}):(role|user|group)/(?P<name>.+)")
"""The ARNs that IAM's simulation accepts; ARNs of role sessions (arn:aws:sts::...:assumed-role/...) are refused."""

_SHOWN = 6
_SOME_NAME = "simulated"
_OWN_ID = "${aws:userid}"


def check_permissions(plan: Plan, account: AwsAccount, *, principal: str, role: str = CLOUDFORMATION) -> CheckResult:
    """Simulate the actions of a role.

    Args:
        plan: The plan.
        account: The account of the principal.
        principal: An ARN that matches PRINCIPAL.
        role: A role of `trn permissions`.

    Raises:
        UnavailableError: The simulation failed.
    """
    arn = PRINCIPAL.fullmatch(principal)
    assert arn is not None
    wanted = list(_calls(plan, role, account=arn["account"], partition=arn["partition"]))
    denials = [denial for calls in wanted for denial in account.simulation.denials(principal, calls)]
    count = len({action for calls in wanted for action in calls.actions})
    needed = f"{count} actions of `trn permissions {role}`"
    if not denials:
        return CheckResult(outcome="pass", found=f"IAM's simulation allows {arn['name']} all of them", needed=needed)
    certain = [denial for denial in denials if not denial.missing_keys]
    if not certain:
        keys = sorted({key for denial in denials for key in denial.missing_keys})
        found = f"IAM's simulation, without values for {', '.join(keys)}, denies {arn['name']} {_named(denials)}"
        return CheckResult(
            outcome="unknown", found=found, needed=needed, fix="check the policies of the principal for these keys"
        )
    found = f"IAM's simulation denies {arn['name']} {_named(certain)}{_denied_by(certain)}"
    fix = f"allow these actions (`trn permissions {role}` prints policies); or omit --role, because a simulation "
    fix += "can differ from a deployment"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)


def _calls(plan: Plan, role: str, *, account: str, partition: str) -> Iterator[Calls]:
    """The actions and resources to simulate, once for each combination of the values in a condition.

    Wildcards within ARNs are replaced by text. Actions with wildcards cannot be simulated, and are omitted.
    """
    region = {"aws:RequestedRegion": plan.region}
    for document in policies(role, role_scope(plan, account=account, partition=partition)):
        for statement in document["Statement"]:
            actions = [action for action in statement["Action"] if "*" not in action]
            resources = [
                arn if arn == "*" else arn.replace(_OWN_ID, _SOME_NAME).replace("*", _SOME_NAME).replace("?", "0")
                for arn in statement["Resource"]
            ]
            own = {"aws:userid": _SOME_NAME} if any(_OWN_ID in arn for arn in statement["Resource"]) else {}
            for context in _contexts(statement.get("Condition", {})):
                if actions:
                    yield Calls(actions=actions, resources=resources, context=region | own | context)


def _contexts(condition: dict[str, dict[str, str | list[str]]]) -> Iterator[dict[str, str]]:
    """A value for each key of a condition, in all combinations."""
    values = {
        key: [value] if isinstance(value, str) else value for keys in condition.values() for key, value in keys.items()
    }
    for combination in product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def _named(denials: Sequence[Denial]) -> str:
    names = list(dict.fromkeys(denial.action for denial in denials))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _denied_by(denials: Sequence[Denial]) -> str:
    reasons = [
        *(["a service control policy"] if any(denial.by_organization for denial in denials) else []),
        *(["its permissions boundary"] if any(denial.by_boundary for denial in denials) else []),
    ]
    return f", some of them by {' and '.join(reasons)}" if reasons else ""
