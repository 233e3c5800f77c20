"""Stacks, resources, events and change sets in the shapes of the CloudFormation API."""

from cfnlint.helpers import ensure_list

from trainium_local.cloudformation.change_sets import ChangeSet
from trainium_local.cloudformation.stack import Deployment, Json, Stack, StackResource

#: Request parameters that are returned as given.
SETTINGS = ("Capabilities", "NotificationARNs", "RoleARN")


def stack(described: Stack) -> Json:
    """Return a stack as in DescribeStacks and ListStacks."""
    description = described.deployment.template.document.get("Description") if described.deployment else None
    return {
        "StackId": described.stack_id,
        "StackName": described.name,
        "ParentId": described.parent.stack_id if described.parent else None,
        "RootId": described.root.stack_id if described.parent else None,
        "Description": description,
        "TemplateDescription": description,
        "Parameters": _parameters(described.deployment),
        "CreationTime": described.created,
        "LastUpdatedTime": described.updated,
        "DeletionTime": described.deleted,
        "StackStatus": described.status,
        "StackStatusReason": described.status_reason,
        **described.settings,
        "Outputs": described.outputs,
        "Tags": _tags(described.deployment),
        "EnableTerminationProtection": described.termination_protection,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
    }


def _parameters(deployment: Deployment | None) -> list[Json]:
    """Return parameters as given, with NoEcho values masked."""
    return [
        {
            "ParameterKey": name,
            "ParameterValue": "****" if parameter.secret else parameter.text,
            "ResolvedValue": ",".join(ensure_list(parameter.value)) if parameter.from_parameter_store else None,
        }
        for name, parameter in (deployment.parameters if deployment else {}).items()
    ]


def _tags(deployment: Deployment | None) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in deployment.tags.items()] if deployment else []


def resource(of: Stack, described: StackResource) -> Json:
    """Return a resource as in DescribeStackResources and ListStackResources."""
    return {
        "StackId": of.stack_id,
        "StackName": of.name,
        "LogicalResourceId": described.logical_id,
        "PhysicalResourceId": described.physical_id,
        "ResourceType": described.resource_type,
        "ResourceStatus": described.status,
        "ResourceStatusReason": described.reason,
        "Timestamp": described.updated,
        "LastUpdatedTimestamp": described.updated,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def change_set(described: ChangeSet, *, with_values: bool = False) -> Json:
    """Return a change set as in DescribeChangeSet and ListChangeSets, optionally with the values of properties."""
    return {
        "ChangeSetId": described.change_set_id,
        "ChangeSetName": described.name,
        "StackId": described.stack.stack_id,
        "StackName": described.stack.name,
        "Description": described.description,
        "CreationTime": described.created,
        "Status": described.status,
        "StatusReason": described.status_reason,
        "ExecutionStatus": described.execution_status,
        "Parameters": _parameters(described.deployment),
        "Tags": _tags(described.deployment),
        **described.settings,
        "Changes": [
            {"Type": "Resource", "ResourceChange": change if with_values else _without_values(change)}
            for change in described.changes
        ],
    }


def _without_values(change: Json) -> Json:
    targets = ({k: v for k, v in detail["Target"].items() if not k.endswith("Value")} for detail in change["Details"])
    return change | {"Details": [detail | {"Target": t} for detail, t in zip(change["Details"], targets, strict=True)]}
