"""The role that SageMaker training jobs run with."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.justification import justify_wildcard
from trainium_cdk.network.network_permissions import allow_interfaces
from trainium_cdk.service_role import allow, service_role
from trainium_cdk.storage.disposable_bucket import allow_objects, named_bucket_arn
from trainium_core.facts import training_facts
from trainium_core.jobs.images import ContainerImage


class TrainingRole(Construct):
    """An execution role for training jobs whose names begin with a prefix. `role` is the CDK object.

    SageMaker can assume it only on behalf of this account (confused deputy prevention). Grant it access to your buckets
    yourself.
    """

    role: iam.IRole

    def __init__(self, scope: Construct, construct_id: str, *, job_prefix: str, image: ContainerImage) -> None:
        """
        Args:
            job_prefix: Prefix of the names of the jobs, and of the log streams that the role may write.
            image: Container image. The role can pull only from its repository.
        """
        super().__init__(scope, construct_id)
        self._stack = Stack.of(self)
        self._container: Mapping[str, Any] = training_facts()["container"]
        account = self._stack.account
        anything = self._stack.format_arn(service="sagemaker", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME)
        self.role = service_role(
            self,
            "Role",
            self._container["service"],
            conditions={"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": anything}},
        )
        self._allow_logs(job_prefix)
        self._allow_image(image)

    def _allow_logs(self, job_prefix: str) -> None:
        group: str = self._container["log_group"]
        whole_group = self._stack.format_arn(
            service="logs", resource="log-group", resource_name=group, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        streams = f"{whole_group}:log-stream:{job_prefix}*"
        # Both forms of a log group's ARN: the first action needs one, the second the other.
        allow(self.role, ["logs:CreateLogGroup", "logs:DescribeLogStreams"], [whole_group, f"{whole_group}:*"])
        allow(self.role, ["logs:CreateLogStream", "logs:PutLogEvents"], [streams])
        justify_wildcard(self.role, f"{whole_group}:*", "listing a job's streams; the group belongs to SageMaker")
        justify_wildcard(self.role, streams, "one log stream for each instance of a job, named after the job")
        allow(self.role, ["cloudwatch:PutMetricData"], ["*"], {"StringEquals": {"cloudwatch:namespace": group}})

    def _allow_image(self, image: ContainerImage) -> None:
        repository = self._stack.format_arn(
            service="ecr",
            account=image.account,
            region=image.region,
            resource="repository",
            resource_name=image.repository,
        )
        pulling = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        allow(self.role, pulling, [repository])
        allow(self.role, ["ecr:GetAuthorizationToken"], ["*"])
        justify_wildcard(
            self.role, "*", "these actions have no resource-level permissions (Service Authorization Reference)"
        )

    def allow_network(self, *, subnet: ec2.ISubnet, security_group: ec2.ISecurityGroup) -> None:
        """Allow jobs to create network interfaces, only in this subnet and with this security group."""
        allow_interfaces(self.role, subnet=subnet, security_groups=[security_group])

    def allow_key(self, key_arn: str) -> None:
        """Allow jobs to use a KMS key, only through S3, and SageMaker to encrypt with it."""
        through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{self._stack.region}.{self._stack.url_suffix}"}}
        allow(self.role, ["kms:Decrypt", "kms:GenerateDataKey"], [key_arn], through_s3)
        # SageMaker needs it with a KmsKeyId (CreateTrainingJob, OutputDataConfig), and not through S3.
        allow(self.role, ["kms:Encrypt"], [key_arn])

    def allow_data(self, url: str) -> None:
        """Allow jobs to read training data below an S3 URL."""
        name, _, folder = url.removeprefix("s3://").partition("/")
        bucket = s3.Bucket.from_bucket_name(self, "Data", name)
        reading = ["s3:GetObject", "s3:ListBucket"]
        prefix = folder.rstrip("/")
        if prefix:
            allow_objects(bucket, self.role, {prefix: reading})
            return
        everything = named_bucket_arn(bucket, "*")
        allow(self.role, ["s3:GetObject"], [everything])
        allow(self.role, ["s3:ListBucket"], [named_bucket_arn(bucket)])
        justify_wildcard(self.role, everything, "trn:sagemaker_data names the whole bucket")
