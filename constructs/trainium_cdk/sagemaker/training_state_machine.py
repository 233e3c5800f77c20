"""The state machine that runs training jobs, and its permissions."""

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from trainium_cdk.justification import justify, justify_wildcard
from trainium_cdk.sagemaker.training_definition import MachineSettings, training_definition
from trainium_cdk.service_role import allow, service_role
from trainium_core.facts import training_facts

_VENDED_LOGS_PREFIX = "/aws/vendedlogs/states/"
"""Log groups with this prefix need no separate statement in the account's resource policy, which would be left
behind."""

_MANAGED_RULE = "StepFunctionsGetEventsForSageMakerTrainingJobsRule"
"""The rule by which Step Functions detects the end of a job (Step Functions documentation, IAM for SageMaker)."""

_LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)


class TrainingStateMachine(Construct):
    """Runs a CreateTrainingJob request.

    `aws stepfunctions start-execution --state-machine-arn ARN --input file://request.json` starts it; `arn` is the ARN.
    `machine` and `log_group` are the CDK objects.
    """

    arn: str
    log_group: logs.LogGroup
    machine: stepfunctions.CfnStateMachine

    def __init__(self, scope: Construct, construct_id: str, *, settings: MachineSettings) -> None:
        super().__init__(scope, construct_id)
        self._stack = Stack.of(self)
        self.log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"{_VENDED_LOGS_PREFIX}{self._stack.stack_name}-{self.node.addr[:8]}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        justify(self.log_group, checkov={"CKV_AWS_158": "requests and outcomes; the service's own encryption applies"})
        # Not the machine's ARN: the role is created before the machine. Source: Step Functions, preventing confused
        # deputies.
        machines = self._stack.format_arn(
            service="states", resource="stateMachine", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        self._role = service_role(
            self,
            "Role",
            "states.amazonaws.com",
            conditions={
                "StringEquals": {"aws:SourceAccount": self._stack.account},
                "ArnLike": {"aws:SourceArn": machines},
            },
        )
        self._allow_jobs(settings)
        allow(self._role, ["sns:Publish"], [settings.topic_arn])
        allow(self._role, _LOG_DELIVERY, ["*"])
        justify_wildcard(
            self._role, "*", "log delivery has no resource-level permissions (Step Functions documentation)"
        )
        self.machine = stepfunctions.CfnStateMachine(
            self,
            "Machine",
            role_arn=self._role.role_arn,
            definition_string=self._stack.to_json_string(training_definition(settings)),
            logging_configuration=stepfunctions.CfnStateMachine.LoggingConfigurationProperty(
                level="ALL",
                include_execution_data=True,
                destinations=[
                    stepfunctions.CfnStateMachine.LogDestinationProperty(
                        cloud_watch_logs_log_group=stepfunctions.CfnStateMachine.CloudWatchLogsLogGroupProperty(
                            log_group_arn=self.log_group.log_group_arn
                        )
                    )
                ],
            ),
        )
        self.arn = self.machine.attr_arn
        # Step Functions checks the role when the machine is created.
        self.machine.node.add_dependency(self._role)
        untraced = "a job of hours in a few logged steps; a trace would add nothing"
        justify(self.machine, cdk_nag={"SF2": untraced}, checkov={"CKV_AWS_284": untraced})

    def _allow_jobs(self, settings: MachineSettings) -> None:
        jobs = self._stack.format_arn(
            service="sagemaker", resource="training-job", resource_name=f"{settings.job_prefix}*"
        )
        running = ["AddTags", "CreateTrainingJob", "DescribeTrainingJob", "ListTags", "StopTrainingJob"]
        allow(self._role, [f"sagemaker:{action}" for action in running], [jobs])
        justify_wildcard(self._role, jobs, "jobs with the prefix of the cluster; each attempt has a new name")
        # A job in a training plan also needs permissions on the plan and its reserved capacity (Service Authorization
        # Reference, Amazon SageMaker; AmazonSageMakerFullAccess).
        for kind in ("training-plan", "reserved-capacity"):
            any_of_the_account = self._stack.format_arn(service="sagemaker", resource=kind, resource_name="*")
            allow(self._role, ["sagemaker:CreateTrainingJob"], [any_of_the_account])
            justify_wildcard(
                self._role, any_of_the_account, "a request names its training plan, not known at synthesis"
            )
        service = training_facts()["container"]["service"]
        allow(self._role, ["iam:PassRole"], [settings.role_arn], {"StringEquals": {"iam:PassedToService": service}})
        rule = self._stack.format_arn(
            service="events",
            resource="rule",
            resource_name=_MANAGED_RULE,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        allow(self._role, ["events:DescribeRule", "events:PutRule", "events:PutTargets"], [rule])
