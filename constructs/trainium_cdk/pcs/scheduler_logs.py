"""The logs of Slurm, delivered by AWS PCS into a log group of the stack."""

from aws_cdk import ArnFormat, Aws, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from trainium_cdk.justification import justify

_LOG_TYPES = {"scheduler": "PCS_SCHEDULER_LOGS", "jobs": "PCS_JOBCOMP_LOGS"}
_DELIVERY = "delivery.logs.amazonaws.com"


class SchedulerLogs(Construct):
    """The logs of slurmctld and of completed jobs, delivered to one log group. `log_group` is the CDK object."""

    log_group: logs.LogGroup

    def __init__(self, scope: Construct, construct_id: str, *, cluster: pcs.CfnCluster, cluster_name: str) -> None:
        """
        Args:
            cluster_name: Prefix of the names of the delivery sources and of their destination.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self.log_group = logs.LogGroup(
            self, "Log", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        justify(
            self.log_group,
            checkov={
                "CKV_AWS_158": "holds no secrets; the service's own encryption applies",
                "CKV_AWS_338": "the log of a pilot, not needed after it",
            },
        )
        # Without this policy, CloudWatch Logs adds one for the account, which outlives the stack.
        principal: iam.IPrincipal = iam.ServicePrincipal(_DELIVERY)  # pyright: ignore[reportAssignmentType]
        policy = logs.ResourcePolicy(
            self,
            "Policy",
            policy_statements=[
                iam.PolicyStatement(
                    principals=[principal],
                    actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                    resources=[self.log_group.log_group_arn],
                    conditions={
                        "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                        "ArnLike": {
                            "aws:SourceArn": stack.format_arn(
                                service="logs",
                                resource="delivery-source",
                                resource_name="*",
                                arn_format=ArnFormat.COLON_RESOURCE_NAME,
                            )
                        },
                    },
                )
            ],
        )
        destination = logs.CfnDeliveryDestination(
            self,
            "Destination",
            name=f"{cluster_name}-pcs",
            destination_resource_arn=stack.format_arn(
                service="logs",
                resource="log-group",
                resource_name=self.log_group.log_group_name,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            ),
        )
        for name, log_type in _LOG_TYPES.items():
            source = logs.CfnDeliverySource(
                self,
                f"{name.capitalize()}Source",
                name=f"{cluster_name}-pcs-{name}",
                log_type=log_type,
                resource_arn=cluster.attr_arn,
            )
            delivery = logs.CfnDelivery(
                self,
                f"{name.capitalize()}Delivery",
                delivery_source_name=source.name,
                delivery_destination_arn=destination.attr_arn,
            )
            delivery.node.add_dependency(source, policy)
