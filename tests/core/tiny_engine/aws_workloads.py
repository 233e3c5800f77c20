"""Finds and stops the tasks of the tiny engine."""

from collections.abc import Iterator, Sequence

from trainium_core.engines.engine import Workloads
from trainium_core.teardown.account import Workload
from trainium_runtime.aws_service import AwsService

STOPPED: list[str] = []


def _running(_account: AwsService, cluster: str, _state_machines: Sequence[str]) -> Iterator[Workload]:
    yield Workload(kind="tiny task", work_id=f"{cluster}-1")


def _stop(_account: AwsService, task: str) -> None:
    STOPPED.append(task)


WORKLOADS = Workloads(running=_running, stop={"tiny task": _stop}, resource_type="AWS::Tiny::Queue")
