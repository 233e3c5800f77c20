"""Stacks, resources, events and change sets in the shapes of the CloudFormation API."""

from cfnlint.helpers import ensure_list

from trainium_local.cloudformation import capabilities, drift
from trainium_local.cloudformation.change_sets import ChangeSet
from trainium_local.cloudformation.stack import Deployment, Json, Stack, StackResource
from trainium_local.cloudformation.template import Template
from trainium_local.resources import registry, schemas

#: Of a request, what is shown as it was given.
SETTINGS = (
    "Capabilities",
    "DisableRollback",
    "NotificationARNs",
    "RetainExceptOnCreate",
    "RoleARN",
    "RollbackConfiguration",
    "TimeoutInMinutes",
)


def stack(one: Stack) -> Json:
    """A stack of DescribeStacks and ListStacks."""
    drifts = list(one.drifts.values())
    description = one.deployment.template.document.get("Description") if one.deployment else None
    return {
        "StackId": one.stack_id,
        "StackName": one.name,
        "Description": description,
        "TemplateDescription": description,
        "Parameters": parameters(one.deployment),
        "CreationTime": one.created,
        "LastUpdatedTime": one.updated,
        "DeletionTime": one.deleted,
        "StackStatus": one.status,
        "StackStatusReason": one.status_reason,
        **{name: one.settings[name] for name in SETTINGS if name in one.settings},
        "Outputs": one.outputs,
        "Tags": tags(one.deployment),
        "EnableTerminationProtection": one.termination_protection,
        "ParentId": one.parent_id,
        "RootId": one.root_id,
        "DriftInformation": {
            "StackDriftStatus": drift.stack_status(drifts) if drifts else "NOT_CHECKED",
            "LastCheckTimestamp": max((each["Timestamp"] for each in drifts), default=None),
        },
    }


def parameters(deployment: Deployment | None) -> list[Json]:
    """Parameters as they were given; a secret one is masked."""
    return [
        {
            "ParameterKey": name,
            "ParameterValue": "****" if parameter.secret else parameter.given,
            "ResolvedValue": ",".join(ensure_list(parameter.value)) if parameter.from_parameter_store else None,
        }
        for name, parameter in (deployment.parameters if deployment else {}).items()
    ]


def tags(deployment: Deployment | None) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in deployment.tags.items()] if deployment else []


def resource(of: Stack, one: StackResource) -> Json:
    """A resource of DescribeStackResources, ListStackResources and DescribeStackResource."""
    drifted = of.drifts.get(one.logical_id, {})
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
        "DriftInformation": {
            "StackResourceDriftStatus": drifted.get("StackResourceDriftStatus", "NOT_CHECKED"),
            "LastCheckTimestamp": drifted.get("Timestamp"),
        },
    }


def template(one: Template, region: str) -> Json:
    """What can be said of a template without deploying it."""
    return {
        "Parameters": _declarations(one),
        "Description": one.document.get("Description"),
        **capabilities.view(one),
        "ResourceTypes": sorted({resource["Type"] for resource in one.resources.values()}),
        "Version": str(one.document.get("AWSTemplateFormatVersion", "")) or None,
        "ResourceIdentifierSummaries": _resource_identifiers(one, region),
    }


def _resource_identifiers(template: Template, region: str) -> list[Json]:
    """What names a resource of each type that can be imported."""
    by_type: dict[str, list[str]] = {}
    for name, definition in template.resources.items():
        if isinstance(registry.find(definition["Type"]), registry.Readable):
            by_type.setdefault(definition["Type"], []).append(name)
    return [
        {"ResourceType": one, "LogicalResourceIds": names, "ResourceIdentifiers": [",".join(schema.primary_identifier)]}
        for one, names in by_type.items()
        if (schema := schemas.find(one, region))
    ]


def _declarations(template: Template) -> list[Json]:
    return [
        {
            "ParameterKey": name,
            "DefaultValue": declaration.get("Default"),
            "ParameterType": declaration["Type"],
            "NoEcho": str(declaration.get("NoEcho")).lower() == "true",
            "Description": declaration.get("Description"),
        }
        for name, declaration in template.parameters.items()
    ]


def change_set(one: ChangeSet, *, with_values: bool = False) -> Json:
    """DescribeChangeSet, and a change set of ListChangeSets. with_values: what properties were and are to be."""
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
        "Parameters": parameters(one.deployment),
        "Tags": tags(one.deployment),
        **one.settings,
        "Changes": [
            {"Type": "Resource", "ResourceChange": change if with_values else _without_values(change)}
            for change in one.changes
        ],
    }


def _without_values(change: Json) -> Json:
    targets = ({k: v for k, v in one["Target"].items() if not k.endswith("Value")} for one in change["Details"])
    return change | {"Details": [one | {"Target": t} for one, t in zip(change["Details"], targets, strict=True)]}
