"""A SageMaker HyperPod cluster of Trainium instances, orchestrated by Slurm or EKS."""

from collections.abc import Mapping

from aws_cdk import Annotations, Aws, Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from trainium_cdk.fleet.cluster_names import tag_all
from trainium_cdk.from_plan import check_region, outbound_tcp_ports, plan_cache, plan_network, plan_pilot
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.hyperpod.hyperpod_role import HyperPodRole
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.network.security_group import EfaSecurityGroup
from trainium_cdk.pilot.pilot import Pilot
from trainium_cdk.storage.compile_cache import allow_cache
from trainium_cdk.storage.disposable_bucket import DisposableBucket, arn_of
from trainium_core.engines.hyperpod.warnings import hyperpod_warnings
from trainium_core.engines.sagemaker.jobs.job import sagemaker_type
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.hyperpod import hyperpod_files

_LIFECYCLE_PREFIX = "lifecycle"
_SCRIPT = "on_create.sh"
_CONTROLLER, _WORKERS, _PARTITION = "controller", "workers", "trainium"

Group = sagemaker.CfnCluster.ClusterInstanceGroupProperty


class HyperPod(Construct):
    """The HyperPod cluster of a plan: an instance group for the nodes, and with Slurm another for a controller.

    CloudFormation chooses the name of the cluster, so that it can replace the cluster: the network and the EKS cluster
    of a HyperPod cluster cannot be changed. `cluster`, `network`, `security_group`, `cache`, `execution` and `pilot`
    (None if the plan has neither an end nor a budget) are its parts.

    Example:

        plan = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=2)
        pod = HyperPod(stack, "Pod", plan=plan)
    """

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """
        Args:
            plan: Describes the nodes; its section `hyperpod` holds the other settings.

        Raises:
            PlanError: The plan is for another region than the stack.
        """
        super().__init__(scope, construct_id)
        check_region(self, plan)
        tag_all(self, plan.cluster_name, plan.tags)
        self._plan, self._settings = plan, plan.hyperpod
        # Nodes download packages and images, and call so many services that endpoints would cost more than a NAT
        # gateway.
        egress = plan.network.egress or "nat-gateway"
        # It is not documented what HyperPod downloads from AWS's buckets.
        self.network = plan_network(self, "Network", plan, egress=egress, any_bucket=True)
        self.security_group = EfaSecurityGroup(
            self,
            "Nodes",
            vpc=self.network.vpc,
            outbound_tcp_ports=outbound_tcp_ports(plan, egress=egress, downloads=True),
            dns_servers=plan.network.dns_servers,
        )
        self._security_groups = self._own_and_eks_security_group()
        self.cache = plan_cache(self, "CompileCache", plan)
        bucket = DisposableBucket(self, "Lifecycle", name=self._lifecycle_bucket_name()).bucket
        files = hyperpod_files(node_settings(plan), script=_SCRIPT, region=plan.region, cache_url=self.cache.url)
        lifecycle = _BucketFiles(self, "Scripts", bucket=bucket, prefix=_LIFECYCLE_PREFIX, files=files)
        self.execution = HyperPodRole(
            self,
            "Execution",
            lifecycle_bucket=bucket,
            lifecycle_prefix=_LIFECYCLE_PREFIX,
            subnet=self.network.subnet,
            security_groups=self._security_groups,
            kubernetes=self._on_eks,
        )
        allow_cache(self.cache, self.execution.role)
        workers = self._workers(lifecycle.url)
        self.cluster = sagemaker.CfnCluster(
            self,
            "Cluster",
            instance_groups=[workers] if self._on_eks else [self._controller(), workers],
            vpc_config=sagemaker.CfnCluster.VpcConfigProperty(
                subnets=[self.network.subnet.subnet_id],
                security_group_ids=[group.security_group_id for group in self._security_groups],
            ),
            orchestrator=self._orchestrator(),
            node_recovery="Automatic" if plan.node.recovery else "None",
        )
        # The instances use these from their first minute.
        self.cluster.node.add_dependency(lifecycle, self.execution, self.security_group, self.network)
        self.pilot = None
        if plan.pilot.ends is not None or plan.pilot.budget_usd is not None:
            self.pilot = Pilot(self, "Pilot", pilot=plan_pilot(plan), cluster_name=plan.cluster_name, nodes=plan.nodes)
            # The pilot is deleted after the cluster, so that it can notify and retry if the cluster cannot be deleted.
            self.cluster.node.add_dependency(self.pilot)
        for name, warning in hyperpod_warnings(plan).items():
            Annotations.of(self).add_warning_v2(f"trn:{name}", warning)

    @property
    def _on_eks(self) -> bool:
        return self._settings.orchestrator == "eks"

    def _own_and_eks_security_group(self) -> list[ec2.ISecurityGroup]:
        """The nodes' own group and, with EKS, that of the EKS cluster, which connects nodes, control plane and
        CoreDNS."""
        of_eks = self._settings.eks_security_group
        if of_eks is None:
            return [self.security_group]
        return [self.security_group, ec2.SecurityGroup.from_security_group_id(self, "Eks", of_eks, mutable=False)]

    def _lifecycle_bucket_name(self) -> str:
        # Bucket names are globally unique, hence the first part of the stack's UUID. The end of the construct's address
        # changes the name when an update renames the construct, which creates the new bucket beside the old one.
        unique = Fn.select(0, Fn.split("-", Fn.select(2, Fn.split("/", Aws.STACK_ID))))
        return (
            f"{facts()['hyperpod']['lifecycle_bucket_prefix']}{self._plan.cluster_name}-{unique}{self.node.addr[-4:]}"
        )

    def _orchestrator(self) -> sagemaker.CfnCluster.OrchestratorProperty:
        if self._settings.eks_cluster is not None:
            return sagemaker.CfnCluster.OrchestratorProperty(
                eks=sagemaker.CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=self._settings.eks_cluster)
            )
        return sagemaker.CfnCluster.OrchestratorProperty(
            slurm=sagemaker.CfnCluster.ClusterOrchestratorSlurmConfigProperty(slurm_config_strategy="Managed")
        )

    def _controller(self) -> Group:
        return Group(
            instance_group_name=_CONTROLLER,
            instance_type=self._settings.controller_type,
            instance_count=1,
            execution_role=self.execution.role.role_arn,
            slurm_config=sagemaker.CfnCluster.ClusterSlurmConfigProperty(node_type="Controller"),
        )

    def _workers(self, lifecycle_url: str) -> Group:
        plan = self._plan
        slurm = sagemaker.CfnCluster.ClusterSlurmConfigProperty(node_type="Compute", partition_names=[_PARTITION])
        return Group(
            instance_group_name=_WORKERS,
            instance_type=sagemaker_type(plan.instance_type),
            instance_count=plan.nodes,
            execution_role=self.execution.role.role_arn,
            # With Slurm, the script runs after HyperPod's own set-up of the node, which EKS nodes do not have.
            life_cycle_config=sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
                source_s3_uri=lifecycle_url,
                on_create=_SCRIPT if self._on_eks else None,
                on_init_complete=None if self._on_eks else _SCRIPT,
            ),
            instance_storage_configs=[
                sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty(
                    ebs_volume_config=sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty(
                        volume_size_in_gb=plan.root_volume_gib
                    )
                )
            ],
            on_start_deep_health_checks=self._deep_health_checks(),
            training_plan_arn=self._settings.training_plan,
            slurm_config=None if self._on_eks else slurm,
            network_interface=sagemaker.CfnCluster.ClusterNetworkInterfaceProperty(interface_type="efa-only")
            if plan.uses_efa and plan.network.secondary_interface_type == "efa-only"
            else None,
        )

    def _deep_health_checks(self) -> list[str] | None:
        if not self._settings.deep_health_checks:
            return None
        # The connectivity check needs two instances (HyperPod documentation, deep health checks).
        return ["InstanceStress", *(["InstanceConnectivity"] if self._plan.nodes > 1 else [])]


class _BucketFiles(Construct):
    """Files under one prefix of a bucket, updated with the template and deleted with the resource."""

    def __init__(
        self, scope: Construct, construct_id: str, *, bucket: s3.IBucket, prefix: str, files: Mapping[str, str]
    ) -> None:
        """
        Args:
            files: Text by file name. It may contain CDK tokens, and counts toward the size of the template.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Writer", handler="bucket_files", timeout_minutes=2)
        objects = arn_of(bucket, f"{prefix}/*")
        function.allow(actions=["s3:PutObject", "s3:DeleteObject"], resources=[objects])
        justify_wildcard(function, objects, "the files of one prefix, whose names depend on the template")
        content = function.custom_resource(
            self,
            "Files",
            resource_type="Custom::TrnBucketFiles",
            properties={"BucketName": bucket.bucket_name, "Prefix": prefix, "Files": dict(files)},
        )
        # At deletion the function still needs its policy and that of the bucket.
        content.node.add_dependency(bucket)
        self.url = f"s3://{bucket.bucket_name}/{prefix}"
