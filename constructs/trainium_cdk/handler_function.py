"""A Lambda function of this package, from a module of trainium_runtime.handlers."""

import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

import trainium_runtime
import trainium_wire
from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.service_role import service_role

_PACKAGES = (trainium_wire, trainium_runtime)
_CODE = "TrainiumCdkHandlerCode"
"""ID of the asset in the scope of the stack, where it must not conflict with ids of the app."""

_ATTEMPTS, _RETRY_MINUTES = 3, 4
"""Lambda retries an asynchronous invocation twice, after one and two minutes (Lambda Developer Guide). The fourth
minute is a margin.
"""

_LONGEST_SERVICE_TIMEOUT = 60
"""Minutes: 3,600 seconds (CloudFormation template reference, ServiceTimeout)."""

_VERSION_CHARACTERS = 12
_NOT_SHIPPED = shutil.ignore_patterns("__pycache__")
_RUNTIME = "python3.14"


class HandlerFunction(Construct):
    """A Lambda function for a custom resource or for events. It, its log group and its role are deleted with the stack.

    The role cannot create log groups. Otherwise, a function that logs after the deletion of its group would create a
    new one, which would remain.
    """

    arn: str
    function: lambda_.CfnFunction
    log_group: logs.LogGroup
    name: str
    policy: iam.Policy
    role: iam.IRole

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        handler: str,
        timeout_minutes: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            handler: A module of trainium_runtime.handlers with a function `handle`.
            timeout_minutes: At most 15.
            environment: Variables of the function. Default: none.
        """
        super().__init__(scope, construct_id)
        self._stack, self._timeout_minutes = Stack.of(self), timeout_minutes
        self.log_group = logs.LogGroup(
            self, "Log", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        self.role = service_role(self, "Role", "lambda.amazonaws.com")
        logging = iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self.log_group.log_group_arn]
        )
        self.policy = iam.Policy(self, "Policy", roles=[self.role], statements=[logging])
        code = _code(self._stack)
        self.function = lambda_.CfnFunction(
            self,
            "Function",
            runtime=_RUNTIME,
            handler=f"{trainium_runtime.__name__}.handlers.{handler}.handle",
            description=f"trainium-cdk: {handler}, version {code.asset_hash[:_VERSION_CHARACTERS]}",
            code=lambda_.CfnFunction.CodeProperty(s3_bucket=code.bucket_name, s3_key=code.key),
            role=self.role.role_arn,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=self.log_group.log_group_name),
            timeout=60 * timeout_minutes,
            memory_size=256,
            environment=lambda_.CfnFunction.EnvironmentProperty(variables=dict(environment)) if environment else None,
        )
        self.arn, self.name = self.function.attr_arn, self.function.ref
        justify(
            self.function,
            checkov={
                "CKV_AWS_115": "called rarely; reserved concurrency would be taken from the account's other functions",
                "CKV_AWS_116": "CloudFormation notices a lost call; the next event handles a lost event",
                "CKV_AWS_117": "calls AWS APIs only; in the VPC it would need paid endpoints",
                "CKV_AWS_173": "the variables are names of resources and limits, not secrets",
            },
        )
        justify(
            self.log_group,
            checkov={
                "CKV_AWS_158": "holds no secrets; the service's own encryption applies",
                "CKV_AWS_338": "the log of a pilot, not needed after it",
            },
        )

    def allow(
        self, *, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Any] | None = None
    ) -> None:
        """Allow the function to perform actions on resources.

        Args:
            conditions: Conditions of the statement. Default: none.
        """
        self.policy.add_statements(
            iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
        )

    def allow_reading(self, actions: Sequence[str]) -> None:
        """Allow the function to perform read-only actions that do not support resource-level permissions."""
        self.allow(actions=actions, resources=["*"])
        reason = "read-only actions without resource-level permissions (Service Authorization Reference)"
        justify_wildcard(self, "*", reason)

    def custom_resource(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resource_type: str,
        properties: Mapping[str, Any],
        timeout_minutes: int | None = None,
    ) -> CustomResource:
        """Add a custom resource that this function implements. It is created after the function and deleted before it.

        Args:
            timeout_minutes: How long CloudFormation waits for a response. Default: the time of three attempts of the
                function, the pauses between them and a minute more, up to CloudFormation's limit of an hour.
        """
        waits = timeout_minutes or min(_ATTEMPTS * self._timeout_minutes + _RETRY_MINUTES, _LONGEST_SERVICE_TIMEOUT)
        made = CustomResource(
            scope,
            construct_id,
            resource_type=resource_type,
            service_token=self.arn,
            service_timeout=Duration.minutes(waits),
            properties=dict(properties),
        )
        made.node.add_dependency(self)
        return made

    def allow_describing_its_stack(self) -> None:
        """Allow the function to read whether its stack is being rolled back."""
        self.allow(actions=["cloudformation:DescribeStacks"], resources=[self._stack.stack_id])

    def allow_calling_itself(self) -> None:
        """Allow the function to invoke itself, so that it can wait longer than one invocation."""
        calling = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self.arn])
        iam.Policy(self, "CallItself", roles=[self.role], statements=[calling])

    def call_on_event(
        self, rule_id: str, *, source: str, detail_types: Sequence[str], detail: Mapping[str, Any]
    ) -> None:
        """Invoke the function for events.

        Args:
            rule_id: ID of the rule in the scope of this construct.
            source: The service that sends the events, such as aws.s3.
            detail_types: Types of the events.
            detail: Pattern for the details of the events.
        """
        pattern = {"source": [source], "detail-type": list(detail_types), "detail": dict(detail)}
        self._call_by_rule(rule_id, event_pattern=pattern)

    def call_every(self, rule_id: str, *, minutes: int) -> None:
        """Invoke the function every few minutes.

        Args:
            rule_id: ID of the rule in the scope of this construct.
            minutes: At least 2.
        """
        self._call_by_rule(rule_id, schedule_expression=f"rate({minutes} minutes)")

    def call_on_object(self, rule_id: str, bucket: s3.IBucket, prefix: str) -> None:
        """Invoke the function for each new object under a prefix of a bucket that sends events."""
        detail = {"bucket": {"name": [bucket.bucket_name]}, "object": {"key": [{"prefix": f"{prefix}/"}]}}
        self.call_on_event(rule_id, source="aws.s3", detail_types=["Object Created"], detail=detail)

    def _call_by_rule(
        self, rule_id: str, *, event_pattern: Mapping[str, Any] | None = None, schedule_expression: str | None = None
    ) -> None:
        rule = events.CfnRule(
            self,
            rule_id,
            event_pattern=event_pattern,
            schedule_expression=schedule_expression,
            targets=[events.CfnRule.TargetProperty(id=self.node.id, arn=self.arn)],
        )
        lambda_.CfnPermission(
            self,
            f"{rule_id}MayCall",
            action="lambda:InvokeFunction",
            function_name=self.arn,
            principal="events.amazonaws.com",
            source_arn=rule.attr_arn,
        )


class _Code(Asset):
    """The code of all handlers, one asset for all functions of a stack, at `bucket_name` and `key`."""

    def __init__(self, stack: Stack) -> None:
        with TemporaryDirectory() as folder:
            for package in _PACKAGES:
                source = Path(str(package.__file__)).parent
                shutil.copytree(source, Path(folder) / package.__name__, ignore=_NOT_SHIPPED)
            _set_modes(Path(folder))
            super().__init__(stack, _CODE, path=folder)
        self.bucket_name, self.key = self.s3_bucket_name, self.s3_object_key


def _set_modes(folder: Path) -> None:
    """Set the file modes that Lambda needs, independent of the umask of the checkout.

    Lambda reads the code as another user, and the CDK CLI keeps file modes in the archive. The hash of an asset does
    not cover modes, so a published asset with wrong modes would not be replaced.
    """
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@cache
def _code(stack: Stack) -> _Code:
    return _Code(stack)
