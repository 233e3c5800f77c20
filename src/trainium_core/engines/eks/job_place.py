"""Where the jobs of an EksJobsStack run, in the form `CLUSTER/NAMESPACE`."""

from trainium_core.engines.eks.kubectl import Kubectl
from trainium_core.plan.settings.eks import EksSettings
from trainium_wire.stack_record import StackRecord


def record_place(record: StackRecord) -> str:
    """The EKS cluster and the namespace in the record of a stack."""
    settings = record.settings
    return f"{settings.get('eks_cluster', '')}/{settings.get('eks_namespace', EksSettings.namespace)}"


def kubectl_at(place: str, region: str) -> Kubectl:
    """kubectl for a place in a region."""
    cluster, _, namespace = place.partition("/")
    return Kubectl(cluster, region, namespace)
