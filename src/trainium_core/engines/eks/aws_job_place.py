"""Where the jobs of an EksJobsStack run, in the form `CLUSTER/NAMESPACE`."""

from trainium_core.engines.eks.kubectl import Kubectl
from trainium_core.jobs.problems import JobError
from trainium_core.plan.settings.eks import EksSettings
from trainium_core.problems import Problem
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_wire.stack_record import StackRecord


def record_place(record: StackRecord) -> str:
    """The EKS cluster and the namespace in the record of a stack."""
    settings = record.settings
    return f"{settings.get('eks_cluster', '')}/{settings.get('eks_namespace', EksSettings.namespace)}"


def check_deployed(settings: EksSettings, record: StackRecord) -> None:
    """Refuse settings of a job that differ from the deployed ones: its pods would have no role, or not be found.

    Raises:
        JobError: The EKS cluster, the namespace or the service account is another one.
    """
    values = {"cluster": settings.cluster, "namespace": settings.namespace, "service_account": settings.service_account}
    problems = list[Problem]()
    for name, got in values.items():
        key = f"eks_{name}"
        deployed = record.settings.get(key, getattr(EksSettings, name))
        if got != deployed:
            fix = f"pass -c trn:{key}={deployed}, or deploy {record.stack} with {got}"
            problems.append(Problem(key=key, got=got, allowed=f"{deployed}, the value of {record.stack}", fix=fix))
    if problems:
        raise JobError(problems)


def kubectl_at(account: AwsService, place: str) -> Kubectl:
    """kubectl for a place in an account."""

    def account_id() -> str:
        with read_errors("sts:GetCallerIdentity"):
            return account.client("sts").get_caller_identity()["Account"]

    cluster, _, namespace = place.partition("/")
    return Kubectl(cluster, account.region, account_id, namespace)
