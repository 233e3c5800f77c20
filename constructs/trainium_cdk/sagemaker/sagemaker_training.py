"""The resources for SageMaker training jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jsii
from aws_cdk import RemovalPolicy, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from trainium_cdk.cdk_types import Key
from trainium_cdk.checks import (
    check,
    check_known,
    check_removal_policy,
    form,
    is_pending,
    refuse,
)
from trainium_cdk.fleet.cluster_names import checked_cluster_name, claim_cluster, tag_all
from trainium_cdk.from_plan import (
    add_plan_warnings,
    check_region,
    outbound_tcp_ports,
    plan_cache,
    plan_network,
    removal_policy,
)
from trainium_cdk.network.network import ClusterNetwork
from trainium_cdk.network.security_group import HTTPS, EfaSecurityGroup
from trainium_cdk.network.subnet_routes import ReachesS3
from trainium_cdk.network.subnet_selection import candidate_subnets
from trainium_cdk.outputs import create_outputs, plan_destroy_command, plan_outputs_scope
from trainium_cdk.physical_names import recorded_bucket_name
from trainium_cdk.pilot.sleep_switch import recorded_sleep_function
from trainium_cdk.sagemaker.training_alerts import TrainingAlerts
from trainium_cdk.sagemaker.training_queue import TrainingQueue
from trainium_cdk.sagemaker.training_role import TrainingRole
from trainium_cdk.sagemaker.training_store import TrainingStore
from trainium_cdk.stack_record import StackRecordParameter, recorded_construct
from trainium_cdk.storage.compile_cache import CompileCache, ICompileCache, allow_cache, cache_url, check_cache
from trainium_cdk.storage.encryption_key import check_granting_key
from trainium_core.jobs.images import parsed_image, training_image
from trainium_core.naming import training_job_prefix
from trainium_core.plan import Plan
from trainium_core.plan.deployed_plan import recorded_settings, recorded_type
from trainium_core.problems import PlanError
from trainium_wire.stack_record import StackRecord

_BILLED_IN_NETWORKS = (ec2.CfnEIP, ec2.CfnNatGateway, ec2.CfnVPCEndpoint)
_ANY_IMAGE = "000000000000.dkr.ecr.us-east-1.amazonaws.com/any:any"
"""Stands for an image that the CDK CLI has yet to look up. It is not deployed."""


@dataclass(frozen=True, kw_only=True)
class _Props:
    """The validated values of training.

    Attributes:
        removal_policy: Removal policy of the store.
        encryption_key: KMS key of the store.
        data: S3 URL of the training data that jobs may read. Default: none.
        settings: Settings for the record of the stack, by key, without defaults.
        instance_type: The instance type for the record, unless it is a built-in one.
    """

    cluster_name: str
    tags: Mapping[str, str]
    image_uri: str
    cache: ICompileCache
    removal_policy: RemovalPolicy
    encryption_key: Key | None
    subnet: ec2.ISubnet | None
    security_group: EfaSecurityGroup | None
    max_instances: int
    report_email: str | None
    data: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instance_type: Mapping[str, Any] | None = None


@jsii.implements(iam.IGrantable, ec2.IConnectable)
class _Training(Construct):
    record: StackRecordParameter
    job_prefix: str
    image_uri: str
    cache: ICompileCache
    store: TrainingStore
    execution: TrainingRole
    alerts: TrainingAlerts
    queue: TrainingQueue
    subnet: ec2.ISubnet | None
    security_group: EfaSecurityGroup | None

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the jobs: `bucket.grant_read(training)` grants to it."""
        return self.execution.role

    @property
    def connections(self) -> ec2.Connections:
        """The security group of jobs in a VPC. Raises PropsError if jobs run outside of a VPC."""
        if self.security_group is None:
            raise refuse(
                self,
                "vpc",
                None,
                allowed="a VPC, without which jobs have no security group",
                fix="pass vpc, or add no rules for the jobs",
            )
        return self.security_group.connections

    def _make(self, props: _Props) -> None:
        claim_cluster(self, props.cluster_name, kind="SageMakerTraining")
        tag_all(self, props.cluster_name, props.tags)
        self.job_prefix = training_job_prefix(props.cluster_name)
        self.image_uri, self.cache = props.image_uri, props.cache
        self.store = TrainingStore(
            self, "Training", removal_policy=props.removal_policy, encryption_key=props.encryption_key
        )
        self.execution = self._execution(props)
        self.subnet, self.security_group = props.subnet, props.security_group
        if self.subnet is not None and self.security_group is not None:
            self.execution.allow_network(subnet=self.subnet, security_group=self.security_group)
        self.queue = TrainingQueue(self, "Runner", max_instances=props.max_instances)
        self.alerts = TrainingAlerts(self, "Alerts", queue_arn=self.queue.arn, email=props.report_email)
        self.record = StackRecordParameter(
            self, "Record", cluster_name=props.cluster_name, record=lambda: self._stack_record(props)
        )
        for resource in self._billed():
            resource.node.add_dependency(self.record)

    def _billed(self) -> Iterator[IConstruct]:
        """What is billed. The record refers to the role of the jobs and to their subnet, which are not."""
        yield from (self.store, self.alerts, self.queue)
        for part in self.node.children:
            if isinstance(part, CompileCache):
                yield part
            elif isinstance(part, ClusterNetwork):
                yield from (child for child in part.node.find_all() if isinstance(child, _BILLED_IN_NETWORKS))

    def _stack_record(self, props: _Props) -> StackRecord:
        return StackRecord(
            cluster=props.cluster_name,
            stack=Stack.of(self).stack_name,
            construct=recorded_construct(self),
            engine="sagemaker",
            bucket=recorded_bucket_name(self, self.store.bucket),
            cache_url=cache_url(recorded_bucket_name(self, self.cache.bucket)),
            settings={**props.settings, "sagemaker_image": self.image_uri},
            instance_type=props.instance_type,
            role_arn=self.execution.role.role_arn,
            subnet_ids=() if self.subnet is None else (self.subnet.subnet_id,),
            security_group_ids=() if self.security_group is None else (self.security_group.security_group_id,),
            kms_key_arn=None if props.encryption_key is None else props.encryption_key.key_arn,
            sleep_function=recorded_sleep_function(self),
        )

    def _execution(self, props: _Props) -> TrainingRole:
        image = parsed_image(props.image_uri)
        assert image is not None
        execution = TrainingRole(self, "Execution", job_prefix=self.job_prefix, image=image)
        self.store.grant_training(execution.role)
        allow_cache(props.cache, execution.role)
        if props.encryption_key is not None:
            execution.allow_key(props.encryption_key.key_arn)
        if props.data is not None:
            execution.allow_data(props.data)
        return execution


class PlannedTraining(_Training):
    """The resources for SageMaker training jobs of a plan, with their network and cache.

    It adds outputs to the stack. In a PlanStack, their names have no prefix.
    Its attributes are those of SageMakerTraining.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", stacks=("sagemaker",))
        training = PlannedTraining(stack, "Training", plan=plan)
        data.grant_read(training)
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """
        Args:
            plan: The plan, whose section `sagemaker` describes the training.

        Raises:
            PlanError: The plan is for another region than the stack, or names no image for a region in which AWS has
                none.
        """
        super().__init__(scope, construct_id)
        settings = plan.sagemaker
        check_region(self, plan)
        key = None if settings.kms_key is None else kms.Key.from_key_arn(self, "Key", settings.kms_key)
        subnet, group = self._network(plan) if settings.vpc else (None, None)
        self._make(
            _Props(
                cluster_name=plan.cluster_name,
                tags=plan.tags,
                image_uri=settings.image or training_image(plan.region),
                cache=plan_cache(self, "CompileCache", plan, encryption_key=key),
                removal_policy=removal_policy(keep=settings.output_at_destroy == "retain"),
                encryption_key=key,
                subnet=subnet,
                security_group=group,
                max_instances=settings.max_instances or plan.nodes,
                report_email=settings.report_email,
                data=settings.data,
                settings=recorded_settings(plan, "sagemaker", also=("tags",)),
                instance_type=recorded_type(plan.type, plan.region),
            )
        )
        add_plan_warnings(self, plan, "sagemaker")
        create_outputs(plan_outputs_scope(self), self._outputs(plan))

    def _outputs(self, plan: Plan) -> Iterator[tuple[str, str, str]]:
        if plan.sagemaker.kms_key is not None:
            yield "KmsKeyArn", "KMS key of the jobs' files", plan.sagemaker.kms_key
        yield "RoleArn", "Execution role of the jobs", self.execution.role.role_arn
        yield "SourceUrl", "S3 folder of uploaded sources", self.store.source_url
        yield "OutputUrl", "S3 folder of models", self.store.output_url
        yield "CheckpointUrl", "S3 folder of checkpoints", self.store.checkpoint_url
        yield "CacheUrl", "S3 folder of compiled graphs", self.cache.url
        if self.subnet is not None and self.security_group is not None:
            yield "SubnetIds", "Subnet of the jobs", self.subnet.subnet_id
            yield "SecurityGroupIds", "Security group of the jobs", self.security_group.security_group_id
        yield "ImageUri", "Container image for PyTorch on Neuron", self.image_uri
        yield "JobQueueArn", "Job queue of AWS Batch", self.queue.arn
        yield "TopicArn", "SNS topic for the ends of jobs", self.alerts.topic.topic_arn
        destroy = plan_destroy_command(self, "sagemaker", plan.cluster_name)
        yield "Destroy", "Deletes the stack; retained resources stay", destroy

    def _network(self, plan: Plan) -> tuple[ec2.ISubnet, EfaSecurityGroup]:
        # SageMaker transfers image and logs outside of the VPC, so S3 is enough.
        egress = plan.network.egress or "none"
        network = plan_network(self, "Network", plan, egress=egress)
        ports = outbound_tcp_ports(plan, egress=egress)
        return network.subnet, _jobs_group(self, network.vpc, ports, plan.network.dns_servers)


class SageMakerTraining(_Training):
    """Role, store, compile cache, queue and alerts for SageMaker training jobs, in a VPC if one is given.

    `execution` has the role of the jobs, `store` their bucket, `cache` the compile cache, `image_uri` the container
    image, `queue` the job queue of AWS Batch, and `alerts` the topic for ended jobs. The names of training jobs begin
    with `job_prefix`.

    Example:

        training = SageMakerTraining(stack, "Training", cluster_name="research")
        data.grant_read(training)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        image: str | None = None,
        cache: ICompileCache | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        encryption_key: Key | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        max_instances: int = 1,
        report_email: str | None = None,
    ) -> None:
        """
        Args:
            cluster_name: 1 to 32 lower-case letters, digits and single hyphens, a letter first and no hyphen last; the
                prefix of job names, and the value of the tag trn:cluster on every resource.
            image: URI of a container image in ECR in the stack's region, known at synthesis. Default: the newest AWS
                image for PyTorch on Neuron that this version of the package lists.
            cache: The compile cache, not read-only. Default: a new CompileCache that is deleted with the construct.
            vpc: VPC of the jobs. Default: a network of SageMaker, with internet access.
            vpc_subnets: Subnet of the jobs, which must reach S3. If several are selected, the first one is used.
                Default: the private subnets.
            encryption_key: KMS key for source, checkpoints, models and a new cache. Default: keys that S3 manages
                (SSE-S3).
            removal_policy: DESTROY deletes source, checkpoints and models with the stack; RETAIN and
                RETAIN_ON_UPDATE_OR_DELETE keep them. Default: DESTROY.
            max_instances: Maximum number of instances that the jobs of the queue use at the same time; other jobs wait.
                Default: 1.
            report_email: Address for notices of ended jobs; its owner must confirm the subscription. Default: none;
                subscribe to `alerts.topic`.

        Raises:
            PropsError: A parameter is invalid.
        """
        super().__init__(scope, construct_id)
        name = checked_cluster_name(self, cluster_name)
        check_known(self, "max_instances", max_instances, why="`trn run` refuses jobs with more instances")
        check(
            self,
            form("sagemaker_max_instances", max_instances, field="max_instances"),
            form("sagemaker_report_email", report_email, field="report_email"),
        )
        image_uri = self._checked_image(image)
        check_granting_key(self, "encryption_key", encryption_key)
        check_removal_policy(self, removal_policy)
        check_cache(self, cache)
        if cache is not None and cache.read_only:
            allowed = "a cache that may be written: PyTorch/XLA itself writes to it"
            raise refuse(self, "cache", cache.node.path, allowed=allowed, fix="remove it to create a new one")
        if vpc is None and vpc_subnets is not None:
            raise refuse(self, "vpc_subnets", "a selection", allowed="no value without vpc", fix="pass vpc too")
        subnet, group = (None, None) if vpc is None else self._place(vpc, vpc_subnets)
        self._make(
            _Props(
                cluster_name=name,
                tags={},
                image_uri=image_uri,
                cache=cache or CompileCache(self, "CompileCache", encryption_key=encryption_key),
                removal_policy=removal_policy,
                encryption_key=encryption_key,
                subnet=subnet,
                security_group=group,
                max_instances=max_instances,
                report_email=report_email,
                settings={"sagemaker_max_instances": max_instances},
            )
        )
        key = self.cache.bucket.encryption_key
        if key is not None and (encryption_key is None or key.node.path != cast(kms.IKey, encryption_key).node.path):
            key.grant_encrypt_decrypt(self.execution.role)

    def _checked_image(self, image: str | None) -> str:
        """The given image, or AWS's newest one.

        Raises:
            PropsError: The image is invalid or in another region, or AWS has none for the region.
        """
        region = Stack.of(self).region
        if image is None:
            if Token.is_unresolved(region):
                allowed = "an image, because the region of the stack, and so AWS's image there, is unknown at synthesis"
                fix = "pass an image of the region, or set env=Environment(region=...) on the stack"
                raise refuse(self, "image", None, allowed=allowed, fix=fix)
            try:
                return training_image(region)
            except PlanError:
                allowed = f"an image, because AWS has no training image in {region}"
                raise refuse(self, "image", None, allowed=allowed, fix=f"pass an image in ECR in {region}") from None
        check_known(self, "image", image, why="the role of the jobs can pull only from its repository")
        if is_pending(image):
            return _ANY_IMAGE
        check(self, form("sagemaker_image", image, field="image"))
        parsed = parsed_image(image)
        if parsed is not None and not Token.is_unresolved(region) and parsed.region != region:
            allowed = f"an image of {region}, the region of the stack"
            raise refuse(self, "image", image, allowed=allowed, fix="pass one of this region")
        return image

    def _place(self, vpc: ec2.IVpc, vpc_subnets: ec2.SubnetSelection | None) -> tuple[ec2.ISubnet, EfaSecurityGroup]:
        subnet = candidate_subnets(self, vpc, vpc_subnets)[0]
        self.node.add_validation(ReachesS3(vpc, [subnet]))
        return subnet, _jobs_group(self, vpc, (HTTPS,), ())


def _jobs_group(scope: Construct, vpc: ec2.IVpc, ports: Sequence[int], dns_servers: Sequence[str]) -> EfaSecurityGroup:
    return EfaSecurityGroup(scope, "Jobs", vpc=vpc, outbound_tcp_ports=ports, dns_servers=dns_servers)
