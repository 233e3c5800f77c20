"""Looks for what runs of a cluster in SageMaker and Step Functions, and stops it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainium_core.naming import training_job_prefix
from trainium_core.teardown.account import Workload
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

_RUNNING = ("InProgress", "Stopping")
_WARM = "Available"
_OVER = ("is in status", "ExecutionDoesNotExist")
"""What the services answer when what is to be stopped has ended by itself meanwhile."""


class AwsWorkloads(AwsService):
    """Implements trainium_core.teardown.account.Workloads."""

    def running_workloads(self, *, cluster: str, state_machines: Sequence[str]) -> Sequence[Workload]:
        return [*self._executions(state_machines), *self._jobs(cluster), *self._warm_pools(cluster)]

    def stop(self, work: Workload) -> None:
        match work.kind:
            case "execution":
                with write_errors("states:StopExecution", absent=_OVER):
                    self.client("stepfunctions").stop_execution(executionArn=work.work_id, cause="trn destroy")
            case "training job":
                with write_errors("sagemaker:StopTrainingJob", absent=_OVER):
                    self.client("sagemaker").stop_training_job(TrainingJobName=work.work_id)
            case "warm pool":
                with write_errors("sagemaker:UpdateTrainingJob", absent=_OVER):
                    no_longer = {"KeepAlivePeriodInSeconds": 0}
                    self.client("sagemaker").update_training_job(TrainingJobName=work.work_id, ResourceConfig=no_longer)

    def _executions(self, state_machines: Sequence[str]) -> Iterator[Workload]:
        for machine in state_machines:
            with read_errors("states:ListExecutions", absent=("StateMachineDoesNotExist",)):
                pages = self.client("stepfunctions").get_paginator("list_executions")
                for page in pages.paginate(stateMachineArn=machine, statusFilter="RUNNING"):
                    for entry in page["executions"]:
                        yield Workload(kind="execution", work_id=entry["executionArn"])

    def _jobs(self, cluster: str) -> Iterator[Workload]:
        for status in _RUNNING:
            for entry in self._named(cluster, StatusEquals=status):
                yield Workload(kind="training job", work_id=entry["TrainingJobName"], stopping=status == "Stopping")

    def _warm_pools(self, cluster: str) -> Iterator[Workload]:
        for entry in self._named(cluster, WarmPoolStatusEquals=_WARM):
            if entry.get("WarmPoolStatus", {}).get("Status") == _WARM:
                yield Workload(kind="warm pool", work_id=entry["TrainingJobName"])

    def _named(self, cluster: str, **condition: str) -> Iterator[Mapping[str, Any]]:
        """Jobs by name and by tag: the name of another cluster may begin with that of this one."""
        prefix = training_job_prefix(cluster)
        with read_errors("sagemaker:ListTrainingJobs"):
            pages = self.client("sagemaker").get_paginator("list_training_jobs")
            found = [
                entry
                for page in pages.paginate(NameContains=prefix, **condition)
                for entry in page["TrainingJobSummaries"]
                if entry["TrainingJobName"].startswith(prefix)
            ]
        yield from (entry for entry in found if self._cluster_of(entry["TrainingJobArn"]) == cluster)

    def _cluster_of(self, job_arn: str) -> str | None:
        with read_errors("sagemaker:ListTags"):
            pages = self.client("sagemaker").get_paginator("list_tags").paginate(ResourceArn=job_arn)
            return tag_values(tag for page in pages for tag in page["Tags"]).get(CLUSTER_TAG)
