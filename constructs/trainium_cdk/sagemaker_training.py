"""Everything a training job on SageMaker needs, without machines to keep."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Annotations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.compile_cache import CompileCache
from trainium_cdk.network import ClusterNetwork, ExistingNetwork
from trainium_cdk.plan_network import plan_network, plan_security_group
from trainium_cdk.plan_scope import check_region, tag_all
from trainium_cdk.security_group import EfaSecurityGroup
from trainium_cdk.training_alerts import TrainingAlerts
from trainium_cdk.training_role import TrainingRole
from trainium_cdk.training_run import TrainingRun
from trainium_cdk.training_state_machine import TrainingStateMachine
from trainium_cdk.training_store import TrainingStore
from trainium_core.engines.sagemaker.jobs.images import parsed_image, training_image
from trainium_core.engines.sagemaker.settings import SageMakerSettings
from trainium_core.engines.sagemaker.warnings import training_warnings
from trainium_core.naming import training_job_prefix
from trainium_core.plan import Plan
from trainium_runtime.naming import CLUSTER_TAG


class SageMakerTraining(Construct):
    """Role, places, network if asked for, alerts and a state machine for the training jobs of a plan.

    Jobs that are not started by the state machine can use all of it too; their names must begin with `job_prefix`.
    Raises PlanError where AWS has no training image for the region, and the plan names none.
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """plan: what the jobs run on; its section of SageMaker's settings says the rest."""
        super().__init__(scope, construct_id)
        self.job_prefix = training_job_prefix(plan.cluster_name)
        self._settings = plan.section(SageMakerSettings)
        self.image_uri = self._settings.image or training_image(plan.region)
        check_region(self, plan)
        tag_all(self, plan)
        self.cache = CompileCache(
            self,
            "CompileCache",
            bucket=s3.Bucket.from_bucket_name(self, "OwnCacheBucket", plan.cache.bucket) if plan.cache.bucket else None,
            retain=plan.cache.outlives_cluster,
            expiration_days=plan.cache.expiration_days,
            kms_key_arn=self._settings.kms_key,
        )
        self.store = TrainingStore(
            self,
            "Training",
            retain=self._settings.output_at_destroy == "retain",
            kms_key_arn=self._settings.kms_key,
        )
        self.execution = self._execution()
        self.network: ClusterNetwork | ExistingNetwork | None = None
        self.security_group: EfaSecurityGroup | None = None
        if self._settings.vpc:
            self._join_network(plan)
        self.alerts = TrainingAlerts(self, "Alerts", job_prefix=self.job_prefix, email=self._settings.report_email)
        self.state_machine = TrainingStateMachine(self, "Runner", run=self._run(plan))
        for name, warning in training_warnings(plan).items():
            Annotations.of(self).add_warning_v2(f"trn:{name}", warning)

    def _execution(self) -> TrainingRole:
        image = parsed_image(self.image_uri)
        assert image is not None
        execution = TrainingRole(self, "Execution", job_prefix=self.job_prefix, image=image)
        self.store.grant_training(execution.role)
        self.cache.grant_use(execution.role)
        if self._settings.kms_key is not None:
            execution.allow_key(self._settings.kms_key)
        if self._settings.data is not None:
            execution.allow_data(self._settings.data)
        return execution

    def _join_network(self, plan: Plan) -> None:
        # Image and logs reach a job through SageMaker itself, not through the VPC: S3 is enough.
        egress = plan.network.egress or "none"
        self.network = plan_network(self, "Network", plan, egress=egress)
        self.security_group = plan_security_group(self, "Jobs", plan, vpc=self.network.vpc, egress=egress)
        self.execution.allow_network(subnet=self.network.subnet, security_group=self.security_group)

    def _run(self, plan: Plan) -> TrainingRun:
        return TrainingRun(
            job_prefix=self.job_prefix,
            role_arn=self.execution.role.role_arn,
            topic_arn=self.alerts.topic.topic_arn,
            checkpoint_url=self.store.checkpoint_url,
            network=self._vpc_config(),
            budget_hours=self._settings.budget_hours,
            capacity_retries=self._settings.capacity_retries,
            tags={CLUSTER_TAG: plan.cluster_name, **plan.tags},
        )

    def _vpc_config(self) -> Mapping[str, Any] | None:
        if self.network is None or self.security_group is None:
            return None
        return {
            "Subnets": [self.network.subnet.subnet_id],
            "SecurityGroupIds": [self.security_group.security_group_id],
        }
