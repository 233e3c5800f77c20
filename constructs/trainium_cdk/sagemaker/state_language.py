"""States of the Amazon States Language as plain data, for the definition of a training run."""

from collections.abc import Mapping, Sequence
from typing import Any

State = dict[str, Any]

ASIDE = "$.unused"
"""Path for unused responses. It is not None, which the CDK would leave out of the JSON."""


def pass_state(parameters: Mapping[str, Any], following: str) -> State:
    return {"Type": "Pass", "Parameters": dict(parameters), "Next": following}


def choice(condition: Mapping[str, Any], following: str, *, otherwise: str) -> State:
    return {"Type": "Choice", "Choices": [{**condition, "Next": following}], "Default": otherwise}


def reason(text: str, *paths: str, following: str) -> State:
    """Sets $.reason.text to why a run fails, with the value at a path for each `{}`."""
    value = {"text.$": f"States.Format('{text}', {', '.join(paths)})"} if paths else {"text": text}
    return {**pass_state(value, following), "ResultPath": "$.reason"}


def catch(errors: Sequence[str], following: str) -> State:
    return {"ErrorEquals": list(errors), "ResultPath": "$.error", "Next": following}


def report(topic_arn: str, subject: str, message: str, following: str) -> State:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Parameters": {"TopicArn": topic_arn, "Subject": subject, "Message.$": message},
        "ResultPath": ASIDE,
        # A report that cannot be sent does not affect the job.
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": ASIDE, "Next": following}],
        "Next": following,
    }
