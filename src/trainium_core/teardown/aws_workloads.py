"""Looks for what runs by the engines of a cluster and outlives their stacks, and stops it."""

from collections.abc import Sequence

from trainium_core.engines.registry import ENGINES
from trainium_core.teardown.account import Workload
from trainium_runtime.aws_service import AwsService


class AwsWorkloads(AwsService):
    """Implements trainium_core.teardown.account.Workloads."""

    def running_workloads(
        self, *, engines: Sequence[str], cluster: str, state_machines: Sequence[str]
    ) -> Sequence[Workload]:
        asked = [workloads for engine in engines if (workloads := ENGINES[engine].workloads) is not None]
        return [work for one in asked for work in one.running(self, cluster, state_machines)]

    def stop(self, work: Workload) -> None:
        every = [engine.workloads.stop for engine in ENGINES.values() if engine.workloads is not None]
        (stop,) = [one[work.kind] for one in every if work.kind in one]
        stop(self, work.work_id)
