"""Stacks, resources, events and change sets in the shapes of the CloudFormation API."""

from cfnlint.helpers import ensure_list

from trainium_local.cloudformation.change_sets import ChangeSet
from trainium_local.cloudformation.stack import Deployment, Json, Stack, StackResource

#: Request parameters that are returned as given.
SETTINGS = ("Capabilities", "NotificationARNs", "RoleARN")


def stack(one: Stack) -> Json:
    """Return a stack as in DescribeStacks and ListStacks."""
    description = one.deployment.template.document.get("Description") if one.deployment else None
    return {
        "StackId": one.stack_id,
        "StackName": one.name,
        "Description": description,
        "TemplateDescription": description,
        "Parameters": _parameters(one.deployment),
        "CreationTime": one.created,
        "LastUpdatedTime": one.updated,
        "DeletionTime": one.deleted,
        "StackStatus": one.status,
        "StackStatusReason": one.status_reason,
        **one.settings,
        "Outputs": one.outputs,
        "Tags": _tags(one.deployment),
        "EnableTerminationProtection": one.termination_protection,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
    }


def _parameters(deployment: Deployment | None) -> list[Json]:
    """Return parameters as given, with NoEcho values masked."""
    return [
        {
            "ParameterKey": name,
            "ParameterValue": "****" if parameter.secret else parameter.given,
            "ResolvedValue": ",".join(ensure_list(parameter.value)) if parameter.from_parameter_store else None,
        }
        for name, parameter in (deployment.parameters if deployment else {}).items()
    ]


def _tags(deployment: Deployment | None) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in deployment.tags.items()] if deployment else []


def resource(of: Stack, one: StackResource) -> Json:
    """Return a resource as in DescribeStackResources and ListStackResources."""
    return {
        "StackId": of.stack_id,
        "StackName": of.name,
        "LogicalResourceId": one.logical_id,
        "PhysicalResourceId": one.physical_id,
        "ResourceType": one.resource_type,
        "ResourceStatus": one.status,
        "ResourceStatusReason": one.reason,
        "Timestamp": one.updated,
        "LastUpdatedTimestamp": one.updated,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def change_set(one: ChangeSet, *, with_values: bool = False) -> Json:
    """Return a change set as in DescribeChangeSet and ListChangeSets.

    with_values: include property values before and after.
    """
    return {
        "ChangeSetId": one.change_set_id,
        "ChangeSetName": one.name,
        "StackId": one.stack.stack_id,
        "StackName": one.stack.name,
        "Description": one.description,
        "CreationTime": one.created,
        "Status": one.status,
        "StatusReason": one.status_reason,
        "ExecutionStatus": one.execution_status,
        "Parameters": _parameters(one.deployment),
        "Tags": _tags(one.deployment),
        **one.settings,
        "Changes": [
            {"Type": "Resource", "ResourceChange": change if with_values else _without_values(change)}
            for change in one.changes
        ],
    }


def _without_values(change: Json) -> Json:
    targets = ({k: v for k, v in one["Target"].items() if not k.endswith("Value")} for one in change["Details"])
    return change | {"Details": [one | {"Target": t} for one, t in zip(change["Details"], targets, strict=True)]}
