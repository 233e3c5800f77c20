"""The alarm of a function that fails while nobody waits for its result."""

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

_ATTEMPTS = 3  # at an event: the call and two retries (Lambda developer guide, asynchronous invocation)
_PERIOD_SECONDS = 900


class FunctionAlarm(Construct):
    """Tells a topic when a function fails so often that an event may have been given up.

    An error that a retry makes good raises no alarm. The topic must let CloudWatch publish.
    """

    def __init__(self, scope: Construct, construct_id: str, *, function_name: str, what: str, topic_arn: str) -> None:
        """what: what the function does, and what does not happen without it; the text of the message."""
        super().__init__(scope, construct_id)
        cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=f"{what} Its errors are in the log group of the function {function_name}.",
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name="FunctionName", value=function_name)],
            statistic="Sum",
            period=_PERIOD_SECONDS,
            evaluation_periods=1,
            threshold=_ATTEMPTS,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
            alarm_actions=[topic_arn],
        )
