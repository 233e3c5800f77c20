"""The state machine that runs one training job, in the Amazon States Language: plain data, without the CDK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_State = dict[str, Any]

_DISCARD_PATH = "$.unused"
"""Path for unused responses. It is not None, which the CDK would leave out of the JSON."""

_MINUTE, _HOUR = 60, 3600
_FIRST_PAUSE_SECONDS = 5 * _MINUTE
_LONGEST_PAUSE_SECONDS = _HOUR
START_UP_SECONDS = _HOUR
"""The time of a job in addition to its run time: waiting for instances, pulling the image, saving the model."""

REQUIRED_FIELDS = (
    "AlgorithmSpecification",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "StoppingCondition.MaxRuntimeInSeconds",
)
"""Required fields of the input, a CreateTrainingJob request."""

_PASSED_FIELDS = (
    "AlgorithmSpecification",
    "CheckpointConfig",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "EnableNetworkIsolation",
    "Environment",
    "HyperParameters",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "StoppingCondition",
    "Tags",
)
"""Fields of the request that are passed to SageMaker, with defaults for missing ones. The state machine itself sets the
name, role and network, and disables the profiler."""

_DESCRIBED = '{*"FailureReason":*}'
"""Matches the cause of a failed job: the response of DescribeTrainingJob, as JSON."""

_NO_CAPACITY = "CapacityError*"
"""Matches the FailureReason of a job for which SageMaker had no capacity."""

_HAD_TRAINED = '*"Status":"Training"*'
"""Matches the cause of a failed job that reached this status. It ran and is billed, so it is not retried, even if its
script wrote a reason that matches _NO_CAPACITY."""


@dataclass(frozen=True, kw_only=True)
class MachineSettings:
    """Values that are the same for every job of a state machine. Texts may be CDK tokens.

    Attributes:
        job_prefix: Prefix of job names.
        checkpoint_url: Folder for the checkpoints of executions whose request has no checkpoint location.
        network: A VpcConfig, or None.
        max_runtime_hours: Maximum run time of a job.
        capacity_retries: Maximum number of retries when capacity or quota is missing.
        tags: Default tags of a job.
    """

    job_prefix: str
    role_arn: str
    topic_arn: str
    checkpoint_url: str
    network: Mapping[str, Any] | None
    max_runtime_hours: int
    capacity_retries: int
    tags: Mapping[str, str]

    @property
    def max_runtime_seconds(self) -> int:
        return self.max_runtime_hours * _HOUR

    @property
    def pauses(self) -> list[int]:
        """Seconds to wait after the n-th attempt. The first entry, for n = 0, is not used."""
        doubled = (_FIRST_PAUSE_SECONDS * 2**n for n in range(self.capacity_retries + 1))
        return [0, *(min(pause, _LONGEST_PAUSE_SECONDS) for pause in doubled)]


def training_definition(settings: MachineSettings) -> _State:
    """The definition: check the request, run the job, retry when there is no capacity, stop a job that exceeds the
    maximum run time, report."""
    return {
        "Comment": "Runs one SageMaker training job; its input is a CreateTrainingJob request",
        "StartAt": "Begin",
        "States": {**_checking(settings), **_running(settings), **_ending(settings)},
    }


def _checking(settings: MachineSettings) -> dict[str, _State]:
    tags = [{"Key": key, "Value": value} for key, value in settings.tags.items()]
    defaults = {
        # One folder for each execution, shared by its attempts only: SageMaker loads everything in it.
        "CheckpointConfig": {"S3Uri.$": f"States.Format('{settings.checkpoint_url}/{{}}', States.UUID())"},
        "EnableInterContainerTrafficEncryption": False,
        "EnableManagedSpotTraining": False,
        "EnableNetworkIsolation": False,
        "Environment": {},
        "HyperParameters": {},
        "Tags": tags,
    }
    missing = {"Or": [{"Variable": f"$.request.{path}", "IsPresent": False} for path in REQUIRED_FIELDS]}
    too_long = {"Variable": "$.request.StoppingCondition.MaxRuntimeInSeconds"}
    return {
        "Begin": _pass_state(
            {
                "given.$": "$",
                "defaults": defaults,
                "id.$": "States.ArrayGetItem(States.StringSplit(States.UUID(), '-'), 0)",
            },
            "Complete the request",
        ),
        "Complete the request": _pass_state(
            {
                "request.$": "States.JsonMerge($.defaults, $.given, false)",
                "id.$": "$.id",
                "pauses": settings.pauses,
                "attempt": {"number": 0},
            },
            "Check the request",
        ),
        "Check the request": {
            "Type": "Choice",
            "Choices": [
                {**missing, "Next": "Refuse an incomplete request"},
                {**too_long, "NumericGreaterThan": settings.max_runtime_seconds, "Next": "Refuse a longer run"},
            ],
            "Default": "Name the job",
        },
        "Refuse an incomplete request": _failed(
            f"Nothing was started: the request must have {', '.join(REQUIRED_FIELDS)}"
        ),
        "Refuse a longer run": _failed(
            "Nothing was started: MaxRuntimeInSeconds is {}; allowed: up to "
            f"{settings.max_runtime_seconds} (trn:sagemaker_max_runtime_hours, or max_runtime of SageMakerTraining)",
            "$.request.StoppingCondition.MaxRuntimeInSeconds",
        ),
    }


def _running(settings: MachineSettings) -> dict[str, _State]:
    number = "States.MathAdd($.attempt.number, 1)"
    return {
        "Name the job": {
            **_pass_state(
                {
                    "number.$": number,
                    "name.$": f"States.Format('{settings.job_prefix}{{}}-{{}}', $.id, {number})",
                    "pause.$": f"States.ArrayGetItem($.pauses, {number})",
                },
                "Train",
            ),
            "ResultPath": "$.attempt",
        },
        "Train": _train(settings),
        "Did it complete": _choice(
            {"Variable": "$.result.TrainingJobStatus", "StringEquals": "Completed"},
            "Report success",
            otherwise="It was stopped",
        ),
        "Is the job described": _choice(
            {"Variable": "$.error.Cause", "StringMatches": _DESCRIBED}, "Read the description", otherwise="It failed"
        ),
        "Read the description": {
            **_pass_state({"job.$": "States.StringToJson($.error.Cause)"}, "Was there no capacity"),
            "ResultPath": "$.described",
        },
        "Was there no capacity": _choice(
            {
                "And": [
                    {"Variable": "$.described.job.FailureReason", "StringMatches": _NO_CAPACITY},
                    {"Not": {"Variable": "$.error.Cause", "StringMatches": _HAD_TRAINED}},
                ]
            },
            "Keep the reason",
            otherwise="The job failed",
        ),
        "Keep the reason": {
            "Type": "Pass",
            "InputPath": "$.described.job.FailureReason",
            "ResultPath": "$.error.Cause",
            "Next": "May it try again",
        },
        "May it try again": _choice(
            {"Variable": "$.attempt.number", "NumericLessThanEquals": settings.capacity_retries},
            "Wait for capacity",
            otherwise="Give up waiting",
        ),
        "Wait for capacity": {"Type": "Wait", "SecondsPath": "$.attempt.pause", "Next": "Name the job"},
        "Stop the job": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:stopTrainingJob",
            "Parameters": {"TrainingJobName.$": "$.attempt.name"},
            "ResultPath": _DISCARD_PATH,
            "Retry": [_again(["States.TaskFailed"])],
            "Catch": [_catch(["States.ALL"], "It could not be stopped")],
            "Next": "It ran too long",
        },
    }


def _train(settings: MachineSettings) -> _State:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
        "Parameters": {
            "TrainingJobName.$": "$.attempt.name",
            "RoleArn": settings.role_arn,
            # The profiler does not work with Trainium.
            "ProfilerConfig": {"DisableProfiler": True},
            **({"VpcConfig": dict(settings.network)} if settings.network else {}),
            **{f"{name}.$": f"$.request.{name}" for name in _PASSED_FIELDS},
        },
        "ResultPath": "$.result",
        "TimeoutSeconds": settings.max_runtime_seconds + START_UP_SECONDS,
        "Retry": [_again(["SageMaker.AmazonSageMakerException", "SageMaker.ThrottlingException"])],
        "Catch": [
            _catch(["SageMaker.ResourceLimitExceededException", "SageMaker.ResourceLimitExceeded"], "May it try again"),
            # Each attempt has a new name, so if the name exists, a call whose response was lost has started the job.
            _catch(["SageMaker.ResourceInUseException", "SageMaker.ResourceInUse"], "It may run unwatched"),
            _catch(["States.Timeout"], "Stop the job"),
            _catch(["States.ALL"], "Is the job described"),
        ],
        "Next": "Did it complete",
    }


def _again(errors: list[str]) -> _State:
    """Three retries, after 30, 60 and 120 seconds."""
    return {"ErrorEquals": errors, "IntervalSeconds": 30, "MaxAttempts": 3, "BackoffRate": 2}


def _ending(settings: MachineSettings) -> dict[str, _State]:
    name = "$.attempt.name"
    overtime = f"{START_UP_SECONDS // _MINUTE} minutes after its maximum run time of {settings.max_runtime_hours} hours"
    return {
        "It was stopped": _failed("{} ended {} ({})", name, "$.result.TrainingJobStatus", "$.result.SecondaryStatus"),
        "The job failed": _failed("{} failed: {}", name, "$.described.job.FailureReason"),
        "It failed": _failed("{} failed: {} {}", name, "$.error.Error", "$.error.Cause"),
        "It may run unwatched": _failed(
            "{} already exists. An earlier call may have started it, and it may be billed until it ends: {}",
            name,
            "$.error.Cause",
        ),
        "It ran too long": _failed(f"{{}} was stopped: it had not ended {overtime}", name),
        "It could not be stopped": _failed(
            f"{{}} had not ended {overtime}, and was not stopped. It may keep running, and be billed: {{}} {{}}",
            name,
            "$.error.Error",
            "$.error.Cause",
        ),
        "Give up waiting": _failed(
            "There was no capacity or quota for {} in {} attempts: {}", name, "$.attempt.number", "$.error.Cause"
        ),
        "Report success": _report(
            settings.topic_arn,
            "Training job completed",
            "States.Format('{} completed; its output is below {}', "
            f"{name}, $.request.OutputDataConfig.S3OutputPath)",
            "Completed",
        ),
        "Completed": {"Type": "Succeed", "OutputPath": "$.result"},
        "Report failure": _report(settings.topic_arn, "Training job did not complete", "$.reason.text", "Failed"),
        "Failed": {"Type": "Fail", "Error": "TrainingDidNotComplete", "CausePath": "$.reason.text"},
    }


def _failed(text: str, *paths: str) -> _State:
    return _reason(text, *paths, following="Report failure")


def _pass_state(parameters: Mapping[str, Any], following: str) -> _State:
    return {"Type": "Pass", "Parameters": dict(parameters), "Next": following}


def _choice(condition: Mapping[str, Any], following: str, *, otherwise: str) -> _State:
    return {"Type": "Choice", "Choices": [{**condition, "Next": following}], "Default": otherwise}


def _reason(text: str, *paths: str, following: str) -> _State:
    """A state that sets $.reason.text to why an execution fails, with the value at a path for each `{}`."""
    value = {"text.$": f"States.Format('{text}', {', '.join(paths)})"} if paths else {"text": text}
    return {**_pass_state(value, following), "ResultPath": "$.reason"}


def _catch(errors: Sequence[str], following: str) -> _State:
    return {"ErrorEquals": list(errors), "ResultPath": "$.error", "Next": following}


def _report(topic_arn: str, subject: str, message: str, following: str) -> _State:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Parameters": {"TopicArn": topic_arn, "Subject": subject, "Message.$": message},
        "ResultPath": _DISCARD_PATH,
        # A report that cannot be sent does not affect the job.
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": _DISCARD_PATH, "Next": following}],
        "Next": following,
    }
