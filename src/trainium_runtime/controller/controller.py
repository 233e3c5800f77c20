"""Looks at the cluster: reads a snapshot, decides, and acts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from trainium_runtime.controller.actions import PrintLine, Resize, Step
from trainium_runtime.controller.deployment import DeploymentDecision, FleetDeployment, Progress, decide
from trainium_runtime.controller.execution import Executor, MembershipChangedError
from trainium_runtime.controller.nodes import node_steps
from trainium_runtime.controller.pilot import PilotLook
from trainium_runtime.controller.reading import ClientFactory, Reader
from trainium_runtime.controller.settings import ControllerSettings
from trainium_runtime.controller.snapshot import Snapshot
from trainium_runtime.log import log
from trainium_runtime.node_metrics import Window
from trainium_runtime.node_store import NodeStore, NoGroupError
from trainium_runtime.pilot_clock import ClockDecision
from trainium_wire.formats import moment
from trainium_wire.keys import RECORDS_PREFIX, key_instance

_ATTEMPTS = 5  # if another invocation changes the membership at the same time


class ClusterController:
    """The controller of one cluster. Invocations may run at the same time: each acts on the whole state.

    Args:
        store: The node records, which an execution environment reads only once.
    """

    def __init__(self, settings: ControllerSettings, client: ClientFactory, store: NodeStore) -> None:
        self._settings = settings
        self._reader, self._executor = Reader(settings, client, store), Executor(settings, client, store)

    def look(self, event: Mapping[str, Any], *, now: datetime) -> None:
        """Look at the cluster because of an event, which can be late, duplicated and out of order.

        The only data used from events are the key of the record to log, and the message of AWS Budgets.

        Raises:
            ClientError: AWS refused a request that reads the state.
            BotoCoreError: AWS was not reached for such a request.
            ExceptionGroup: The failures of the steps that act on the state.
            RuntimeError: In each attempt, another invocation changed the membership first.
        """
        key = object_key(event)
        for _ in range(_ATTEMPTS):
            errors = self._look_once(event, key, now)
            if others := [error for error in errors if not isinstance(error, MembershipChangedError)]:
                raise ExceptionGroup("some steps failed", others)
            if not errors:
                return
            key = None
        raise RuntimeError(f"in {_ATTEMPTS} attempts, another invocation changed the membership first")

    def _look_once(self, event: Mapping[str, Any], key: str | None, now: datetime) -> Sequence[Exception]:
        # EventBridge's events are about nodes. There can be thousands, which concern only the nodes.
        snapshot = self._reader.snapshot(now, pilot=self._settings.pilot is not None and "source" not in event)
        clock, steps, errors = self._pilot(snapshot, budget_reached=self._reports_spent_budget(event))
        instance = key_instance(key, RECORDS_PREFIX) if key else None
        if key and instance not in snapshot.records:
            steps.append(Step([PrintLine(fields={"ignored": key, "why": "not a record, or deleted since"})]))
        nodes = node_steps(snapshot, replacements=self._settings.replacements, clock=clock, event_instance=instance)
        return [*errors, *self._executor.execute([*steps, *nodes])]

    def print_metrics(self, scheduled: str) -> None:
        """Print the metrics of the nodes, which CloudWatch Logs extracts.

        Each sample belongs to one run, so nothing has to be stored. Only if Lambda repeats a run after it printed, its
        samples count twice.

        Args:
            scheduled: The time for which the run was scheduled, from EventBridge Scheduler.

        Raises:
            ValueError: It is not a time.
            ClientError: AWS refused a request.
            BotoCoreError: AWS was not reached.
        """
        if self._settings.metrics is None:
            return
        run = moment(scheduled)
        if run is None:
            raise ValueError(f"not a time: {scheduled!r}")
        window = Window.before(run)
        usages, records = self._reader.reports(window.start)
        for line in self._settings.metrics.lines(window, usages, records):
            log(**line)

    def deploy(
        self, deployment: FleetDeployment, progress: Progress, *, now: datetime
    ) -> tuple[DeploymentDecision, Sequence[Exception]]:
        """Look at the cluster while a deployment waits for its nodes.

        Returns:
            The decision, and why the pilot or the size of the group are not as decided. Other failures are logged.

        Raises:
            ClientError: AWS refused a request that reads the state.
            BotoCoreError: AWS was not reached for such a request.
            NoGroupError: The group does not exist.
        """
        pilot = self._settings.pilot is not None and deployment.nodes > 0
        snapshot = self._reader.snapshot(now, pilot=pilot, deploying=True)
        if snapshot.group is None:
            raise NoGroupError(f"the Auto Scaling group {self._settings.group} does not exist")
        clock, steps, errors = self._pilot(snapshot, deploying=True)
        decision = decide(snapshot, deployment, progress, clock)
        if decision.superseded:
            return decision, []
        if decision.size is not None:
            steps.append(Step([Resize(nodes=decision.size)]))
        errors = [*errors, *self._executor.execute(steps)]
        # Each event reports such failures too, with an alarm if there is a pilot.
        nodes = node_steps(snapshot, replacements=deployment.replacements, clock=clock)
        for error in self._executor.execute(nodes):
            log(f"a step failed: {error!r}")
        return decision, errors

    def _pilot(
        self, snapshot: Snapshot, *, budget_reached: bool = False, deploying: bool = False
    ) -> tuple[ClockDecision | None, list[Step], Sequence[Exception]]:
        pilot = self._settings.pilot
        if pilot is None or snapshot.pilot is None or snapshot.stack is None:
            return None, [], []
        look = PilotLook(
            settings=self._settings,
            pilot=pilot,
            snapshot=snapshot,
            stack=snapshot.stack,
            state=snapshot.pilot,
            budget_reached=budget_reached,
            deploying=deploying,
        )
        decision = look.decision()
        log(nodes=decision.nodes, why=decision.why, desired=snapshot.desired)
        return decision, list(look.steps(decision)), snapshot.pilot.errors

    def _reports_spent_budget(self, event: Mapping[str, Any]) -> bool:
        """Whether the event is the message of AWS Budgets about this pilot's budget."""
        name = self._settings.pilot.budget if self._settings.pilot else None
        return name is not None and any(name in message for message in _messages(event))


def object_key(event: Mapping[str, Any]) -> str | None:
    """The key in S3's event about an object; None for other events."""
    detail = event.get("detail")
    s3_object = detail.get("object") if isinstance(detail, dict) else None
    return str(s3_object.get("key")) if isinstance(s3_object, dict) else None


def _messages(event: Mapping[str, Any]) -> Iterator[str]:
    """The messages in an event of SNS."""
    for record in event.get("Records", ()):
        yield record.get("Sns", {}).get("Message", "")
