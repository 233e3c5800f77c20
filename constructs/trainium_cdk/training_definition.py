"""The state machine that runs one training job, in the Amazon States Language: plain data, without the CDK."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainium_cdk.training_run import MINUTE, START_UP_SECONDS, TrainingRun

State = dict[str, Any]

NEEDED = (
    "AlgorithmSpecification",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "StoppingCondition.MaxRuntimeInSeconds",
)
"""What the input, a CreateTrainingJob request, must have for the machine to run it."""

TAKEN = (
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
"""What of the request reaches SageMaker as it is. Name, role and network are the machine's own."""


_DESCRIBED = '{*"FailureReason":*}'
"""The cause of a job that failed: what DescribeTrainingJob answers, as JSON."""

_ASIDE = "$.unused"
"""Where answers go that nobody reads. Not None, which would drop them: the CDK's JSON leaves None out."""


def training_definition(run: TrainingRun) -> State:
    """The definition: checks the request, runs the job, waits for capacity within a bound, stops it, reports."""
    return {
        "Comment": "Runs one SageMaker training job; its input is a CreateTrainingJob request",
        "StartAt": "Begin",
        "States": {**_checking(run), **_running(run), **_ending(run)},
    }


def _checking(run: TrainingRun) -> dict[str, State]:
    tags = [{"Key": key, "Value": value} for key, value in run.tags.items()]
    defaults = {
        # A folder for each execution, which its attempts share and no other run: SageMaker loads all that is in it.
        "CheckpointConfig": {"S3Uri.$": f"States.Format('{run.checkpoint_url}/{{}}', States.UUID())"},
        "EnableInterContainerTrafficEncryption": False,
        "EnableManagedSpotTraining": False,
        "EnableNetworkIsolation": False,
        "Environment": {},
        "HyperParameters": {},
        "Tags": tags,
    }
    missing = {"Or": [{"Variable": f"$.request.{path}", "IsPresent": False} for path in NEEDED]}
    too_long = {"Variable": "$.request.StoppingCondition.MaxRuntimeInSeconds"}
    return {
        "Begin": _pass(
            {
                "given.$": "$",
                "defaults": defaults,
                "id.$": "States.ArrayGetItem(States.StringSplit(States.UUID(), '-'), 0)",
            },
            "Complete the request",
        ),
        "Complete the request": _pass(
            {
                "request.$": "States.JsonMerge($.defaults, $.given, false)",
                "id.$": "$.id",
                "pauses": run.pauses,
                "attempt": {"number": 0},
            },
            "Check the request",
        ),
        "Check the request": {
            "Type": "Choice",
            "Choices": [
                {**missing, "Next": "Refuse an incomplete request"},
                {**too_long, "NumericGreaterThan": run.budget_seconds, "Next": "Refuse a run over budget"},
            ],
            "Default": "Name the job",
        },
        "Refuse an incomplete request": _reason(f"Nothing was started: the request must have {', '.join(NEEDED)}"),
        "Refuse a run over budget": _reason(
            "Nothing was started: MaxRuntimeInSeconds is {}, over the budget of "
            f"{run.budget_seconds} (trn:sagemaker_budget_hours)",
            "$.request.StoppingCondition.MaxRuntimeInSeconds",
        ),
    }


def _running(run: TrainingRun) -> dict[str, State]:
    number = "States.MathAdd($.attempt.number, 1)"
    return {
        "Name the job": {
            **_pass(
                {
                    "number.$": number,
                    "name.$": f"States.Format('{run.job_prefix}{{}}-{{}}', $.id, {number})",
                    "pause.$": f"States.ArrayGetItem($.pauses, {number})",
                },
                "Train",
            ),
            "ResultPath": "$.attempt",
        },
        "Train": _train(run),
        "Did it complete": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.result.TrainingJobStatus", "StringEquals": "Completed", "Next": "Report success"}
            ],
            "Default": "It was stopped",
        },
        "Why it failed": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.error.Cause", "StringMatches": "*CapacityError*", "Next": "May it try again"},
                {"Variable": "$.error.Cause", "StringMatches": _DESCRIBED, "Next": "Read the reason"},
            ],
            "Default": "It failed",
        },
        "Read the reason": {
            **_pass({"job.$": "States.StringToJson($.error.Cause)"}, "The job failed"),
            "ResultPath": "$.described",
        },
        "May it try again": {
            "Type": "Choice",
            "Choices": [
                {
                    "Variable": "$.attempt.number",
                    "NumericLessThanEquals": run.capacity_retries,
                    "Next": "Wait for capacity",
                }
            ],
            "Default": "Give up waiting",
        },
        "Wait for capacity": {"Type": "Wait", "SecondsPath": "$.attempt.pause", "Next": "Name the job"},
        "Stop the job": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:stopTrainingJob",
            "Parameters": {"TrainingJobName.$": "$.attempt.name"},
            "ResultPath": _ASIDE,
            # It may have ended just now.
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": _ASIDE, "Next": "It ran too long"}],
            "Next": "It ran too long",
        },
    }


def _train(run: TrainingRun) -> State:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
        "Parameters": {
            "TrainingJobName.$": "$.attempt.name",
            "RoleArn": run.role_arn,
            # Neither profiler nor debugger works with Trainium.
            "ProfilerConfig": {"DisableProfiler": True},
            **({"VpcConfig": dict(run.network)} if run.network else {}),
            **{f"{name}.$": f"$.request.{name}" for name in TAKEN},
        },
        "ResultPath": "$.result",
        "TimeoutSeconds": run.budget_seconds + START_UP_SECONDS,
        "Retry": [
            {
                "ErrorEquals": ["SageMaker.AmazonSageMakerException", "SageMaker.ThrottlingException"],
                "IntervalSeconds": 30,
                "MaxAttempts": 3,
                "BackoffRate": 2,
            }
        ],
        "Catch": [
            _catch(["SageMaker.ResourceLimitExceededException", "SageMaker.ResourceLimitExceeded"], "May it try again"),
            _catch(["States.Timeout"], "Stop the job"),
            _catch(["States.ALL"], "Why it failed"),
        ],
        "Next": "Did it complete",
    }


def _ending(run: TrainingRun) -> dict[str, State]:
    name = "$.attempt.name"
    return {
        "It was stopped": _reason("{} ended {} ({})", name, "$.result.TrainingJobStatus", "$.result.SecondaryStatus"),
        "The job failed": _reason("{} failed: {}", name, "$.described.job.FailureReason"),
        "It failed": _reason("{} failed: {} {}", name, "$.error.Error", "$.error.Cause"),
        "It ran too long": _reason(
            f"{{}} was stopped: it had not ended {START_UP_SECONDS // MINUTE} minutes after its budget of "
            f"{run.budget_hours} hours",
            name,
        ),
        "Give up waiting": _reason(
            "There was no capacity or quota for {} in {} attempts: {}", name, "$.attempt.number", "$.error.Cause"
        ),
        "Report success": _report(
            run,
            "Training job completed",
            "States.Format('{} completed; its output is below {}', "
            f"{name}, $.request.OutputDataConfig.S3OutputPath)",
            "Completed",
        ),
        "Completed": {"Type": "Succeed", "OutputPath": "$.result"},
        "Report failure": _report(run, "Training job did not complete", "$.reason.text", "Failed"),
        "Failed": {"Type": "Fail", "Error": "TrainingDidNotComplete", "CausePath": "$.reason.text"},
    }


def _pass(parameters: Mapping[str, Any], following: str) -> State:
    return {"Type": "Pass", "Parameters": dict(parameters), "Next": following}


def _reason(text: str, *paths: str) -> State:
    """Why the run fails, with `{}` for what is at each path."""
    value = {"text.$": f"States.Format('{text}', {', '.join(paths)})"} if paths else {"text": text}
    return {**_pass(value, "Report failure"), "ResultPath": "$.reason"}


def _catch(errors: Sequence[str], following: str) -> State:
    return {"ErrorEquals": list(errors), "ResultPath": "$.error", "Next": following}


def _report(run: TrainingRun, subject: str, message: str, following: str) -> State:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Parameters": {"TopicArn": run.topic_arn, "Subject": subject, "Message.$": message},
        "ResultPath": _ASIDE,
        # A report that cannot be sent changes nothing about the job.
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": _ASIDE, "Next": following}],
        "Next": following,
    }
