"""What watches, notifies, schedules and budgets: logs, parameters, topics, alarms, schedules, state machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource, Tagging
from trainium_local.resources.registry import Actual, Properties, Provisioned, Request, ResourceType
from trainium_local.resources.settings import Setting


class _Topic(ApiResource):
    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        for subscription in request.properties.get("Subscription") or []:
            api.call("sns", "Subscribe", request.region, {"TopicArn": created.physical_id, **subscription})


class _TopicPolicy:
    """A policy set on each of its topics; no call creates or deletes the policy itself."""

    def create(self, request: Request) -> Provisioned:
        self._set(request, request.properties["PolicyDocument"])
        return Provisioned(physical_id=request.generated_name(), attributes={"Id": request.logical_id})

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        self._set(request, request.properties["PolicyDocument"])
        return current

    def delete(self, request: Request, current: Provisioned) -> None:
        """The topics keep their policies; most go with the stack."""

    def _set(self, request: Request, policy: Any) -> None:
        for topic in request.properties["Topics"]:
            arguments = {"TopicArn": topic, "AttributeName": "Policy", "AttributeValue": policy}
            api.call("sns", "SetTopicAttributes", request.region, arguments)


class _QueuePolicy(_TopicPolicy):
    def delete(self, request: Request, current: Provisioned) -> None:
        try:
            self._set(request, "")
        except ClientError as error:
            if not api.says_gone(error):
                raise

    def _set(self, request: Request, policy: Any) -> None:
        for queue in request.properties["Queues"]:
            api.call("sqs", "SetQueueAttributes", request.region, {"QueueUrl": queue, "Attributes": {"Policy": policy}})


class _LogGroup(ApiResource):
    def read(self, request: Request, physical_id: str) -> Actual | None:
        asked = {"logGroupNamePrefix": physical_id}
        groups = api.call("logs", "DescribeLogGroups", request.region, asked)["logGroups"]
        found = next((group for group in groups if group["logGroupName"] == physical_id), None)
        if found is None:
            return None
        asked = {"resourceArn": found["arn"].removesuffix(":*")}
        tags = api.call("logs", "ListTagsForResource", request.region, asked)["tags"]
        properties = {
            "LogGroupName": physical_id,
            "RetentionInDays": found.get("retentionInDays"),
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }
        provisioned = Provisioned(physical_id=physical_id, attributes={"Arn": found["arn"]})
        return Actual(provisioned=provisioned, properties=properties)


class _Parameter(ApiResource):
    def read(self, request: Request, physical_id: str) -> Actual | None:
        found = api.call("ssm", "GetParameters", request.region, {"Names": [physical_id]})["Parameters"]
        if not found:
            return None
        properties = {name: found[0][name] for name in ("Name", "Type", "Value")}
        provisioned = Provisioned(physical_id=physical_id, attributes=properties)
        return Actual(provisioned=provisioned, properties=properties)


class _Schedule(ApiResource):
    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        return {"Name": current.physical_id, "GroupName": request.properties.get("GroupName", "default")}


class _Budget(ApiResource):
    def given_name(self, request: Request) -> str:
        return request.properties["Budget"].get("BudgetName", "")

    def _create_arguments(self, request: Request, facts: Mapping[str, Any]) -> dict[str, Any]:
        arguments = super()._create_arguments(request, facts)
        return {**arguments, "Budget": {"BudgetName": facts["name"], **arguments["Budget"]}}

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        new = {"BudgetName": current.physical_id, **request.properties["Budget"]}
        return {**super()._identity(request, current), "NewBudget": new}


_TOPIC_ATTRIBUTES = ("DisplayName", "KmsMasterKeyId", "FifoTopic", "ContentBasedDeduplication", "SignatureVersion")


def _topic_arguments(topic: Properties) -> Properties:
    """The API takes a topic's properties as attributes, all but its name and tags."""
    attributes = {name: topic[name] for name in _TOPIC_ATTRIBUTES if name in topic}
    return {"Name": topic.get("TopicName"), "Tags": topic.get("Tags"), "Attributes": attributes}


def _state_machine(machine: Properties) -> Properties:
    given = machine.get("DefinitionString") or machine.get("Definition")
    definition = given if isinstance(given, str) else json.dumps(given)
    for name, value in (machine.get("DefinitionSubstitutions") or {}).items():
        definition = definition.replace(f"${{{name}}}", str(value))
    return {**machine, "type": machine.get("StateMachineType"), "definition": definition}


def _map_tags(properties: Properties) -> Properties:
    """The template's map of tags -> the API's list."""
    tags = properties.get("Tags")
    if not isinstance(tags, dict):
        return properties
    return {**properties, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


_BY_ID_ARN = Tagging(identified_by={"ResourceArn": "{id}"})

TYPES: dict[str, ResourceType] = {
    "AWS::Logs::LogGroup": _LogGroup(
        service="logs",
        create_call="CreateLogGroup",
        name_property="LogGroupName",
        name_limit=512,
        physical_id="{name}",
        attributes={"Arn": "arn:aws:logs:{region}:{account}:log-group:{id}:*"},
        settings=(
            Setting(
                property_name="RetentionInDays",
                operation="PutRetentionPolicy",
                argument="retentionInDays",
                reset="DeleteRetentionPolicy",
            ),
        ),
        delete_call="DeleteLogGroup",
        identified_by={"logGroupName": "{id}"},
        tagging=Tagging(identified_by={"resourceArn": "arn:aws:logs:{region}:{account}:log-group:{id}"}),
    ),
    "AWS::SSM::Parameter": _Parameter(
        service="ssm",
        create_call="PutParameter",
        name_property="Name",
        name_limit=512,
        adapt=_map_tags,
        physical_id="{name}",
        attributes={"Type": "{properties[Type]}", "Value": "{properties[Value]}"},
        update_call="PutParameter",
        update_arguments={"Overwrite": True, "Tags": None},
        delete_call="DeleteParameter",
        identified_by={"Name": "{id}"},
        tagging=Tagging(
            identified_by={"ResourceType": "Parameter", "ResourceId": "{id}"},
            tag="AddTagsToResource",
            untag="RemoveTagsFromResource",
        ),
    ),
    "AWS::SSM::Document": ApiResource(
        service="ssm",
        create_call="CreateDocument",
        name_property="Name",
        adapt=lambda document: {"DocumentType": "Command", "DocumentFormat": "JSON", **document},
        physical_id="{name}",
        delete_call="DeleteDocument",
        identified_by={"Name": "{id}"},
        tagging=Tagging(
            identified_by={"ResourceType": "Document", "ResourceId": "{id}"},
            tag="AddTagsToResource",
            untag="RemoveTagsFromResource",
        ),
    ),
    "AWS::SNS::Topic": _Topic(
        service="sns",
        create_call="CreateTopic",
        name_property="TopicName",
        name_limit=256,
        arguments={"Name": "{name}"},
        adapt=_topic_arguments,
        adapted=frozenset({*_TOPIC_ATTRIBUTES, "Subscription"}),
        physical_id="{answer[TopicArn]}",
        attributes={"TopicArn": "{id}", "TopicName": "{name}"},
        delete_call="DeleteTopic",
        identified_by={"TopicArn": "{id}"},
        tagging=_BY_ID_ARN,
    ),
    "AWS::SNS::Subscription": ApiResource(
        service="sns",
        create_call="Subscribe",
        arguments={"ReturnSubscriptionArn": True},
        physical_id="{answer[SubscriptionArn]}",
        attributes={"Arn": "{id}"},
        delete_call="Unsubscribe",
        identified_by={"SubscriptionArn": "{id}"},
    ),
    "AWS::SNS::TopicPolicy": _TopicPolicy(),
    "AWS::SQS::QueuePolicy": _QueuePolicy(),
    "AWS::CloudWatch::Alarm": ApiResource(
        service="cloudwatch",
        create_call="PutMetricAlarm",
        update_call="PutMetricAlarm",
        name_property="AlarmName",
        name_limit=255,
        physical_id="{name}",
        attributes={"Arn": "arn:aws:cloudwatch:{region}:{account}:alarm:{id}"},
        delete_call="DeleteAlarms",
        identified_by={"AlarmName": "{id}", "AlarmNames": "{id}"},
        tagging=Tagging(identified_by={"ResourceARN": "{attributes[Arn]}"}),
    ),
    "AWS::CloudWatch::Dashboard": ApiResource(
        service="cloudwatch",
        create_call="PutDashboard",
        update_call="PutDashboard",
        name_property="DashboardName",
        name_limit=255,
        physical_id="{name}",
        delete_call="DeleteDashboards",
        identified_by={"DashboardName": "{id}", "DashboardNames": "{id}"},
    ),
    "AWS::Scheduler::ScheduleGroup": ApiResource(
        service="scheduler",
        create_call="CreateScheduleGroup",
        name_property="Name",
        name_limit=64,
        physical_id="{name}",
        attributes={"Arn": "{answer[ScheduleGroupArn]}", "State": "ACTIVE"},
        delete_call="DeleteScheduleGroup",
        identified_by={"Name": "{id}"},
        tagging=Tagging(identified_by={"ResourceArn": "{attributes[Arn]}"}),
    ),
    "AWS::Scheduler::Schedule": _Schedule(
        service="scheduler",
        create_call="CreateSchedule",
        update_call="UpdateSchedule",
        name_property="Name",
        name_limit=64,
        physical_id="{name}",
        attributes={"Arn": "{answer[ScheduleArn]}"},
        delete_call="DeleteSchedule",
        identified_by={"Name": "{id}"},
    ),
    "AWS::StepFunctions::StateMachine": ApiResource(
        service="stepfunctions",
        create_call="CreateStateMachine",
        update_call="UpdateStateMachine",
        name_property="StateMachineName",
        name_limit=80,
        adapt=_state_machine,
        adapted=frozenset({"DefinitionString", "StateMachineType", "DefinitionSubstitutions"}),
        arguments={"name": "{name}"},
        physical_id="{answer[stateMachineArn]}",
        attributes={"Arn": "{id}", "Name": "{name}"},
        delete_call="DeleteStateMachine",
        identified_by={"stateMachineArn": "{id}"},
        tagging=Tagging(identified_by={"resourceArn": "{id}"}),
    ),
    "AWS::Budgets::Budget": _Budget(
        service="budgets",
        create_call="CreateBudget",
        arguments={"AccountId": "{account}"},
        update_call="UpdateBudget",
        physical_id="{name}",
        delete_call="DeleteBudget",
        identified_by={"AccountId": "{account}", "BudgetName": "{id}"},
    ),
}
