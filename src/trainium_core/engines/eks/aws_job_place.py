"""Where the jobs of an EksJobsStack run, in the form `CLUSTER/NAMESPACE`."""

from trainium_core.engines.eks.kubectl import Kubectl
from trainium_core.plan.settings.eks import EksSettings
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_wire.stack_record import StackRecord


def record_place(record: StackRecord) -> str:
    """The EKS cluster and the namespace in the record of a stack."""
    settings = record.settings
    return f"{settings.get('eks_cluster', '')}/{settings.get('eks_namespace', EksSettings.namespace)}"


def kubectl_at(account: AwsService, place: str) -> Kubectl:
    """kubectl for a place in an account."""

    def account_id() -> str:
        with read_errors("sts:GetCallerIdentity"):
            return account.client("sts").get_caller_identity()["Account"]

    cluster, _, namespace = place.partition("/")
    return Kubectl(cluster, account.region, account_id, namespace)
