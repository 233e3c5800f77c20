"""moto's interpreter of the Amazon States Language, with scripted SageMaker jobs.

moto interprets states, paths, intrinsic functions, Retry, Catch and timeouts, and publishes to its own SNS. It lacks
`.sync` for SageMaker, so tests define the outcomes of jobs. Pauses are recorded and skipped.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar
from unittest.mock import patch

import boto3
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sns import sns_backends
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task import state_task_factory
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import ResourceCondition
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_callback import (
    StateTaskServiceCallback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_factory import (
    state_task_service_for,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor

Json = dict[str, Any]

REGION = "us-west-2"
LONGEST_EXECUTION_SECONDS = 120
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Ends:
    """A job that starts and ends with a status, as DescribeTrainingJob shows it.

    Attributes:
        stages: The secondary statuses before the end.
    """

    status: str
    secondary_status: str = ""
    failure_reason: str = ""
    stages: tuple[str, ...] = ("Starting", "Training")


@dataclass(frozen=True)
class Refused:
    """A refused call, with the error name of Step Functions."""

    error: str
    cause: str = "refused"


class NeverEnds:
    """A job that starts and keeps running."""


Outcome = Ends | Refused | NeverEnds


@dataclass(kw_only=True)
class Execution:
    """The result of an execution.

    Attributes:
        states: Names of the states that were entered, in order.
        jobs: The CreateTrainingJob requests.
        stopped: Names in StopTrainingJob requests.
        pauses: Seconds of each skipped wait.
        reports: Messages to the topic.
    """

    status: str = ""
    output: Any = None
    error: str = ""
    cause: str = ""
    states: list[str] = field(default_factory=list[str])
    jobs: list[Json] = field(default_factory=list[Json])
    stopped: list[str] = field(default_factory=list[str])
    pauses: list[float] = field(default_factory=list[float])
    reports: list[str] = field(default_factory=list[str])


def execute(
    definition: Json, request: Json, outcomes: Sequence[Outcome], *, stopping: Refused | None = None
) -> Execution:
    """Execute a definition whose topic is REPORTS_TOPIC.

    Args:
        outcomes: One for each CreateTrainingJob.
        stopping: The error of StopTrainingJob. Default: it succeeds.
    """
    execution = Execution()
    with _interpreter(execution, outcomes, stopping):
        topic = _client("sns").create_topic(Name="reports")["TopicArn"]
        client = _client("stepfunctions")
        machine = client.create_state_machine(
            name="machine",
            definition=json.dumps(definition).replace(REPORTS_TOPIC, topic),
            roleArn=f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/runner",
        )["stateMachineArn"]
        arn = client.start_execution(stateMachineArn=machine, input=json.dumps(request))["executionArn"]
        _set_result(execution, _description_at_end(client, arn))
        execution.states = _states_entered(client, arn)
        notifications = sns_backends[DEFAULT_ACCOUNT_ID][REGION].topics[topic].sent_notifications
        execution.reports = [notification[1] for notification in notifications]
    return execution


REPORTS_TOPIC = "arn:aws:sns:us-west-2:123456789012:reports-of-the-test"


@cache
def _client(service: str) -> Any:
    """A client of moto, whose credentials are always the same."""
    return boto3.client(service, REGION)


def _description_at_end(client: Any, arn: str) -> Json:
    """DescribeExecution's response once the execution has ended."""
    until = time.monotonic() + LONGEST_EXECUTION_SECONDS
    while time.monotonic() < until:
        description = client.describe_execution(executionArn=arn)
        if description["status"] != "RUNNING":
            return description
        time.sleep(_POLL_SECONDS)
    raise AssertionError("the execution does not end")


def _set_result(execution: Execution, description: Json) -> None:
    execution.status = description["status"]
    execution.output = json.loads(description["output"]) if description.get("output") else None
    execution.error, execution.cause = description.get("error", ""), description.get("cause", "")


def _states_entered(client: Any, arn: str) -> list[str]:
    events = client.get_execution_history(executionArn=arn, maxResults=1000)["events"]
    return [event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event]


@contextmanager
def _interpreter(record: Execution, outcomes: Sequence[Outcome], stopping: Refused | None) -> Iterator[None]:
    class Script(_ScriptedSageMaker):
        execution = record
        next_outcomes = iter(outcomes)
        stop_error = stopping

    def service_for(service_name: str) -> Any:
        return Script() if service_name in ("sagemaker", "aws-sdk") else state_task_service_for(service_name)

    class Clock:
        sleep = staticmethod(record.pauses.append)

    def record_wait(_: Any, env: Any, wait_seconds: float) -> None:  # noqa: ARG001
        record.pauses.append(wait_seconds)

    with (
        mock_aws(config={"stepfunctions": {"execute_state_machine": True}}),
        patch.object(state_task_factory, "state_task_service_for", service_for),
        patch.object(AmazonStateLanguageParser, "parse", _parse),
        patch.object(WaitFunction, "_wait_interval", record_wait),
        patch.object(retrier_decl, "time", Clock),
    ):
        yield


_moto_parses = AmazonStateLanguageParser.parse


@cache
def _syntax_tree(definition: str) -> Any:
    return _moto_parses(definition)[1]


def _parse(definition: str) -> Any:
    """Parse as moto does, with a cache of syntax trees: parsing takes most of the time of an execution."""
    tree = _syntax_tree(definition)
    return Preprocessor().visit(tree), tree


class _ScriptedSageMaker(StateTaskServiceCallback):
    """`sagemaker:createTrainingJob.sync` and `aws-sdk:sagemaker:stopTrainingJob`, as scripted."""

    execution: ClassVar[Execution]
    next_outcomes: ClassVar[Iterator[Outcome]]
    stop_error: ClassVar[Refused | None]

    def __init__(self) -> None:
        super().__init__(supported_integration_patterns={ResourceCondition.Sync})

    def _validate_service_integration_is_supported(self) -> None:
        """Accept every integration: this class implements those that the definition uses."""

    def _eval_service_task(
        self,
        env: Any,
        resource_runtime_part: Any,  # noqa: ARG002
        normalised_parameters: Json,
        state_credentials: Any,  # noqa: ARG002
    ) -> None:
        name = normalised_parameters["TrainingJobName"]
        if self.resource.api_action == "stopTrainingJob":
            self.execution.stopped.append(name)
            if self.stop_error:
                error = self.stop_error
                raise self._failure(env, CustomErrorName(error.error), error.error, error.cause)
            env.stack.append({})
            return
        self.execution.jobs.append(normalised_parameters)
        outcome = next(self.next_outcomes)
        while isinstance(outcome, NeverEnds) and env.is_running():
            time.sleep(_POLL_SECONDS)
        if isinstance(outcome, Refused):
            raise self._failure(env, CustomErrorName(outcome.error), outcome.error, outcome.cause)
        if isinstance(outcome, Ends):
            job = _described(normalised_parameters, outcome)
            if outcome.status == "Failed":
                failed = StatesErrorName(typ=StatesErrorNameType.StatesTaskFailed)
                raise self._failure(env, failed, "States.TaskFailed", json.dumps(job, separators=(",", ":")))
            env.stack.append(job)

    def _eval_integration_pattern(self, **_: Any) -> None:
        """Nothing to do: the service task has waited for the end of the job."""

    def _failure(self, env: Any, name: Any, error: str, cause: str) -> FailureEventException:
        details = TaskFailedEventDetails(
            error=error, cause=cause, resource=self._get_sfn_resource(), resourceType="sagemaker"
        )
        return FailureEventException(
            FailureEvent(
                env=env,
                error_name=name,
                event_type=HistoryEventType.TaskFailed,
                event_details=EventDetails(taskFailedEventDetails=details),
            )
        )


def _described(request: Json, outcome: Ends) -> Json:
    job = {name: request[name] for name in ("TrainingJobName", "HyperParameters", "Environment")}
    job |= {"TrainingJobStatus": outcome.status, "SecondaryStatus": outcome.secondary_status}
    job["SecondaryStatusTransitions"] = [
        {"Status": stage, "StartTime": 0} for stage in (*outcome.stages, outcome.status)
    ]
    return job | ({"FailureReason": outcome.failure_reason} if outcome.failure_reason else {})
