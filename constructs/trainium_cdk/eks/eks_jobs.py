"""What the jobs of a plan on an existing EKS cluster need in AWS."""

from collections.abc import Iterator
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from trainium_cdk.eks.pod_role import PodRole
from trainium_cdk.fleet.cluster_names import claim_cluster, tag_all
from trainium_cdk.fleet.job_access import allow_jobs
from trainium_cdk.fleet.node_records import NodeRecords
from trainium_cdk.from_plan import add_plan_warnings, check_region, plan_cache, plan_record
from trainium_cdk.outputs import create_outputs, plan_destroy_command, plan_outputs_scope
from trainium_cdk.stack_record import StackRecordParameter
from trainium_cdk.storage.compile_cache import CompileCache, allow_cache
from trainium_core.plan import Plan
from trainium_wire.stack_record import StackRecord


class EksJobs(Construct):
    """The bucket, the compile cache and the role of the pods of a plan's jobs on an existing EKS cluster.

    The nodes are those of a NeuronNodeGroup whose `cluster_name` is that of the plan, in this app or another one.
    `records` has the bucket of the jobs, `cache` the compile cache, and `pod_role` the role of the pods. It adds
    outputs to the stack. In a PlanStack, their names have no prefix.

    Example:

        plan = Plan.of(instance_type="trn1.32xlarge", region="us-west-2", stacks=("eks",), eks_cluster="prod")
        jobs = EksJobs(stack, "Jobs", plan=plan)
        data.grant_read(jobs.pod_role)
    """

    records: NodeRecords
    cache: CompileCache
    pod_role: PodRole

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        """
        Args:
            plan: The plan, whose section `eks` names the EKS cluster, the namespace and the service account.

        Raises:
            PlanError: The plan is for another region than the stack.
        """
        super().__init__(scope, construct_id)
        check_region(self, plan)
        claim_cluster(self, plan.cluster_name, kind="EksJobs")
        tag_all(self, plan.cluster_name, plan.tags)
        self._plan = plan
        self.record: StackRecordParameter = StackRecordParameter(
            self, "Record", cluster_name=plan.cluster_name, record=self._stack_record
        )
        self.node.add_dependency(self.record)
        cluster = eks.Cluster.from_cluster_attributes(self, "EksCluster", cluster_name=plan.eks.cluster or "")
        self.records = NodeRecords(self, "Records")
        self.cache = plan_cache(self, "CompileCache", plan)
        self.pod_role = PodRole(
            self,
            "Pods",
            cluster=cluster,
            namespace=plan.eks.namespace,
            service_account=plan.eks.service_account,
        )
        role: Any = self.pod_role.role
        self.records.grant_jobs(role)
        allow_cache(self.cache, role)
        allow_jobs(self, role, plan.jobs)
        add_plan_warnings(self, plan, "eks")
        create_outputs(plan_outputs_scope(self), self._outputs())

    def _outputs(self) -> Iterator[tuple[str, str, str]]:
        yield "JobsBucket", "The bucket of the jobs", self.records.bucket.bucket_name
        yield "CompileCache", "S3 folder of compiled graphs", self.cache.url
        yield "PodRoleArn", "Role of the pods", self.pod_role.role.role_arn
        destroy = plan_destroy_command(self, "eks", self._plan.cluster_name)
        yield "Destroy", "Deletes the stack; retained resources stay", destroy

    def _stack_record(self) -> StackRecord:
        return plan_record(self, self._plan, "eks", bucket=self.records.bucket, cache=self.cache)
