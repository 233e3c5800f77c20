"""Results of IAM's policy simulator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService

_ACTIONS_AT_ONCE = 50
_ALLOWED = "allowed"


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Requests to simulate: each action on each resource.

    Attributes:
        actions: Names of the actions.
        resources: ARNs of the resources.
        context: Condition keys of the requests, with their values.
    """

    actions: Sequence[str]
    resources: Sequence[str]
    context: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class Denial:
    """An action that is denied on at least one of the resources.

    Attributes:
        action: Name of the action.
        missing_keys: Condition keys in policies for which the simulation had no value; real requests may have one.
        by_organization: Whether the organization's service control policies do not allow the action.
        by_boundary: Whether the permissions boundary does not allow the action.
    """

    action: str
    missing_keys: Sequence[str] = ()
    by_organization: bool = False
    by_boundary: bool = False


class AwsSimulation(AwsService):
    def denials(self, principal: str, calls: Calls) -> Sequence[Denial]:
        """The actions that IAM does not allow.

        Args:
            principal: ARN of a role, user or group.
            calls: The requests to simulate.

        Raises:
            UnavailableError: The principal does not exist, or a request failed or was denied.
        """
        results: list[Mapping[str, Any]] = []
        for first in range(0, len(calls.actions), _ACTIONS_AT_ONCE):
            results += self._results(principal, calls, first)
        return [_denial(result) for result in results if not _is_allowed(result)]

    def _results(self, principal: str, calls: Calls, first: int) -> Iterator[Mapping[str, Any]]:
        request = {
            "PolicySourceArn": principal,
            "ActionNames": list(calls.actions[first : first + _ACTIONS_AT_ONCE]),
            "ResourceArns": list(calls.resources),
            "ContextEntries": [
                {"ContextKeyName": key, "ContextKeyType": "string", "ContextKeyValues": [value]}
                for key, value in calls.context.items()
            ],
        }
        with read_errors("iam:SimulatePrincipalPolicy"):
            for page in self.client("iam").get_paginator("simulate_principal_policy").paginate(**request):
                yield from page["EvaluationResults"]


def _is_allowed(result: Mapping[str, Any]) -> bool:
    # The decision on each resource is in ResourceSpecificResults (IAM API Reference, EvaluationResult).
    by_resource = result.get("ResourceSpecificResults", [])
    decisions = [each["EvalResourceDecision"] for each in by_resource] or [result["EvalDecision"]]
    return all(decision == _ALLOWED for decision in decisions)


def _denial(result: Mapping[str, Any]) -> Denial:
    by_resource = result.get("ResourceSpecificResults", [])
    denials = [result, *(each for each in by_resource if each["EvalResourceDecision"] != _ALLOWED)]
    missing = {key for denial in denials for key in denial.get("MissingContextValues", [])}
    return Denial(
        action=result["EvalActionName"],
        missing_keys=tuple(sorted(missing)),
        by_organization=not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True),
        by_boundary=any(
            not denial.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True)
            for denial in denials
        ),
    )
