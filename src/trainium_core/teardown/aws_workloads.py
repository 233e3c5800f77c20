"""Looks for what runs by the engines of a cluster and outlives their stacks, and stops it."""

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainium_core.engines.registry import ENGINES
from trainium_core.teardown.account import Workload
from trainium_runtime.aws_service import AwsService


@dataclass(frozen=True, kw_only=True)
class EngineWorkloads:
    """What an engine's entry names as its `workloads`.

    running: what runs of a cluster, by its name and the ARNs of its state machines. stop: what stops one, by the kind
    of the workload, which no other engine has; it is given the id.
    """

    running: Callable[[AwsService, str, Sequence[str]], Iterable[Workload]]
    stop: Mapping[str, Callable[[AwsService, str], None]]


class AwsWorkloads(AwsService):
    """Implements trainium_core.teardown.account.Workloads."""

    def running_workloads(
        self, *, engines: Sequence[str], cluster: str, state_machines: Sequence[str]
    ) -> Sequence[Workload]:
        asked = [_workloads_of(engine) for engine in engines]
        return [work for one in asked for work in one.running(self, cluster, state_machines)]

    def stop(self, work: Workload) -> None:
        every = [_workloads_of(key) for key, engine in ENGINES.items() if engine.workloads is not None]
        (stop,) = [one.stop[work.kind] for one in every if work.kind in one.stop]
        stop(self, work.work_id)


def _workloads_of(engine: str) -> EngineWorkloads:
    name = ENGINES[engine].workloads
    found = None if name is None else pkgutil.resolve_name(name)
    if not isinstance(found, EngineWorkloads):
        raise TypeError(f"{name} of the engine {engine} is {found!r}, not EngineWorkloads")
    return found
