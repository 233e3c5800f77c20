"""The clock of a pilot: every few minutes, reconciles the cluster with the time.

Invoked by a schedule, by AWS Budgets through SNS when the budget is spent, and by the fleet gate, to which it returns
the number of nodes. It warns people and jobs of the end, stops and launches the nodes of its Auto Scaling group, and
deletes its stack if the action at the end is `destroy`. Without a group of nodes it only warns and deletes the stack.
"""

import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.facts import facts
from trainium_runtime.pilot_clock import ClockDecision, PilotTerms, clock_decision, is_idle_stop, warning_mark
from trainium_runtime.pilot_end import PilotEnd, utc_text
from trainium_runtime.usage_store import read_usage

from .cluster_snapshot import ClusterSnapshot, find_capacity_block, find_group
from .log import log
from .pilot_notices import PilotNotices
from .pilot_stop import stop_event

GATE_EVENT = {"kind": "gate"}
"""The event with which the fleet gate invokes the clock."""


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    """Reconcile the pilot.

    Returns:
        `nodes`, the number of nodes to have now, and `why`, a sentence for people.

    Raises:
        ClientError: AWS refused to describe the group, the stack or the Capacity Block.
        BotoCoreError: AWS was not reached for such a request.
        ExceptionGroup: All other failures.
    """
    import boto3

    clock = Clock(
        os.environ,
        autoscaling=boto3.client("autoscaling"),
        cloudformation=boto3.client("cloudformation"),
        ec2=boto3.client("ec2"),
        functions=boto3.client("lambda"),
        s3=boto3.client("s3"),
        sns=boto3.client("sns"),
    )
    decision = clock.reconcile(event, now=datetime.fromtimestamp(time.time(), UTC))
    return {"nodes": decision.nodes, "why": decision.why}


class Clock:
    """Warns of the end of a pilot, stops and launches its nodes, and deletes its stack.

    Args:
        settings: Environment variables from the construct.
        functions: The Lambda client.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        autoscaling: Any,
        cloudformation: Any,
        ec2: Any,
        functions: Any,
        s3: Any,
        sns: Any,
    ) -> None:
        self._settings = settings
        self._autoscaling, self._cloudformation, self._ec2 = autoscaling, cloudformation, ec2
        self._functions, self._s3, self._sns = functions, s3, sns
        self._terms = _terms(settings)

    def reconcile(self, event: Mapping[str, Any], *, now: datetime) -> ClockDecision:
        name = self._settings.get("GROUP")
        group = find_group(self._autoscaling, name) if name else None
        if name and group is None:
            return ClockDecision(nodes=0, why=f"the Auto Scaling group {name} does not exist")
        notices = PilotNotices(self._sns, self._settings)
        snapshot = ClusterSnapshot(
            now=now,
            stack=self._cloudformation.describe_stacks(StackName=self._settings["STACK_ID"])["Stacks"][0],
            group=group,
            notices=notices,
            by_gate=event.get("kind") == GATE_EVENT["kind"],
        )
        errors: list[Exception] = [notices.error] if notices.error else []
        idle_since = None
        try:
            idle_since = self._idle_since(snapshot)
        except Exception as error:  # nodes stop at the end even if their usage is unknown
            errors.append(error)
        decision = self._decide(snapshot, budget_reached=self._reports_spent_budget(event), idle_since=idle_since)
        log(nodes=decision.nodes, why=decision.why, desired=snapshot.desired)
        for step in (
            self._remember_stop,
            self._stop,
            self._remember_spent,
            self._start,
            self._warn,
            self._notify_jobs,
            self._notify_idle,
            self._notify_nodes_left,
            self._notify_deletion,
            self._delete,
        ):
            try:
                step(decision, snapshot)
            except Exception as error:  # a failed step does not prevent the others
                errors.append(error)
        if errors:
            raise ExceptionGroup("some steps failed", errors)
        return decision

    def _idle_since(self, snapshot: ClusterSnapshot) -> datetime | None:
        """Since when the nodes are unused; None if they are in use, or if this is unknown or does not matter now."""
        bucket, stack, group = self._settings.get("RECORDS_BUCKET"), snapshot.stack, snapshot.group
        if not (bucket and group and self._terms.idle and snapshot.settled) or snapshot.by_gate:
            return None
        instances = [instance["InstanceId"] for instance in group["Instances"]]
        if not instances or len(instances) != snapshot.desired:
            return None
        usage = read_usage(self._s3, bucket, instances, now=snapshot.now)
        log(usage=usage.state, why=usage.why)
        # A deployment starts the idle time again, because its nodes will be used soon.
        return usage.idle_since and max(usage.idle_since, stack.get("LastUpdatedTime") or stack["CreationTime"])

    def _decide(self, snapshot: ClusterSnapshot, *, budget_reached: bool, idle_since: datetime | None) -> ClockDecision:
        deployed, name = snapshot.stack["CreationTime"], self._settings.get("CAPACITY_BLOCK")
        ended = self._terms.ends is not None and self._terms.ends.instant(deployed) <= snapshot.now
        return clock_decision(
            now=snapshot.now,
            terms=self._terms,
            deployed=deployed,
            # The end must not depend on EC2.
            block=find_capacity_block(self._ec2, name) if name and not ended else None,
            asleep=self._settings["ASLEEP"] == "true",
            memory=snapshot.notices.memory,
            budget_reached=budget_reached,
            nodes_wanted=snapshot.desired > 0,
            idle_since=idle_since,
            by_gate=snapshot.by_gate,
        )

    def _reports_spent_budget(self, event: Mapping[str, Any]) -> bool:
        """Whether the event is the message of AWS Budgets about this pilot's budget."""
        name = self._settings.get("BUDGET")
        messages = [record.get("Sns", {}).get("Message", "") for record in event.get("Records", [])]
        return name is not None and any(name in message for message in messages)

    def _remember_stop(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        if decision.stopped and snapshot.group:
            snapshot.notices.remember_stop(decision.stopped)

    def _stop(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        # Not for a sleeping cluster: its stack, which may be waking, sets the size.
        if decision.stopped and snapshot.desired:
            self._resize(0)
            remedy = _WAKE if is_idle_stop(decision.stopped) else self._how_to_continue()
            snapshot.notices.publish("nodes stopped", f"The nodes are being terminated: {decision.why}.", remedy)

    def _remember_spent(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        before = snapshot.notices.memory.spent
        try:
            snapshot.notices.remember_spent(decision.spent)
        except Exception:
            if decision.spent and snapshot.desired:  # otherwise no later run would stop the nodes
                self._resize(0)
            raise
        if decision.spent and decision.spent != before and decision.notice:
            at = utc_text(decision.notice.at.replace(microsecond=0))
            soon = f"The nodes are terminated at {at}: {decision.notice.reason}. Until then jobs can save their work."
            snapshot.notices.publish("nodes stop soon", soon, self._how_to_continue())

    def _start(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        if not decision.nodes or not snapshot.group:
            return
        # The gate itself sets the returned size.
        running = snapshot.desired > 0 or snapshot.by_gate
        stopped = snapshot.notices.memory.stopped is not None
        # If a person set the size to 0, it stays 0 until a deployment, except in a Capacity Block, where the clock
        # launches nodes. While an operation on the stack is in progress, the gate sets the size.
        if not running and snapshot.settled and (self._terms.in_capacity_block or stopped):
            self._resize(decision.nodes)
            snapshot.notices.publish("nodes started", f"{decision.nodes} nodes are being launched: {decision.why}.")
            running = True
        if running:
            snapshot.notices.forget_stop()

    def _warn(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        ends = decision.warn_of
        if ends is None:
            return
        after = "the stack is deleted" if self._terms.destroys else "the nodes are terminated; everything else is kept"
        left = _time_left(ends - snapshot.now)
        ending = f"The pilot ends at {utc_text(ends)}, in {left}. Then {after}."
        snapshot.notices.publish_once(warning_mark(ends), f"ends in {left}", ending, _EXTEND)

    def _notify_jobs(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        """Notify the jobs through the node reconciler, or withdraw the notice if a deployment has moved the end."""
        reconciler = self._settings.get("RECONCILER")
        if reconciler and decision.nodes and (decision.notice or snapshot.by_gate):
            payload = json.dumps(stop_event(decision.notice)).encode()
            self._functions.invoke(FunctionName=reconciler, InvocationType="Event", Payload=payload)

    def _notify_idle(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        """Notify only people: unused nodes have no job that could act on a notice."""
        if decision.idle:
            soon = f"The nodes are terminated at {utc_text(decision.idle.at)}: {decision.idle.reason}."
            use = "They keep running while a job of trn run, or any process that uses a Neuron device, is running."
            snapshot.notices.publish_idle(decision.idle.at, "is idle", soon, use)

    def _notify_nodes_left(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        """Warn of instances that Auto Scaling has not terminated long after the end.

        They may be in standby or protected from scale-in, or the process Terminate may be suspended.
        """
        if (
            decision.ended
            and not decision.delete
            and snapshot.nodes_left
            and snapshot.now >= _nodes_deadline(decision.ended)
        ):
            snapshot.notices.publish_once(
                f"nodes left: {decision.stopped}",
                "nodes are left",
                f"{snapshot.nodes_left} nodes still exist, and may be billed: {decision.why}.",
                "Check in the Auto Scaling group whether they are in standby or protected from scale-in, or whether "
                "its process Terminate is suspended.",
            )

    def _notify_deletion(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        # Before the deletion, which removes the subscriptions of the topic early.
        if not _is_deletable(decision, snapshot):
            return
        if snapshot.stack["StackStatus"] == "DELETE_FAILED":
            self._notify_deletion_failed(decision, snapshot, snapshot.stack.get("StackStatusReason", "no reason given"))
        elif snapshot.notices.memory.notified != _not_deleted(decision):
            message = f"The stack is being deleted: {decision.why}."
            snapshot.notices.publish_once(f"deleting: {decision.stopped}", "is being deleted", message)

    def _delete(self, decision: ClockDecision, snapshot: ClusterSnapshot) -> None:
        from botocore.exceptions import ClientError

        if not _is_deletable(decision, snapshot):
            return
        try:
            self._cloudformation.delete_stack(StackName=self._settings["STACK_ID"])
        except ClientError as error:
            self._notify_deletion_failed(decision, snapshot, error.response["Error"].get("Message", str(error)))
            raise
        log(deleting=self._settings["STACK_ID"])

    def _notify_deletion_failed(self, decision: ClockDecision, snapshot: ClusterSnapshot, reason: str) -> None:
        minutes = facts()["pilot"]["minutes_between_runs"]
        snapshot.notices.publish_once(
            _not_deleted(decision),
            "could not be deleted",
            f"The stack still exists, and its resources may be billed: {reason}",
            f"The deletion is retried every {minutes} minutes without another message. Run `trn destroy` for details.",
        )

    def _resize(self, nodes: int) -> None:
        self._autoscaling.set_desired_capacity(
            AutoScalingGroupName=self._settings["GROUP"], DesiredCapacity=nodes, HonorCooldown=False
        )
        log(resized_to=nodes)

    def _how_to_continue(self) -> str:
        return "" if self._terms.in_capacity_block else _EXTEND


_EXTEND = (
    "To continue: run trn extend 8h in the folder of cdk.json. After a spent budget, raise trn:budget_usd and deploy."
)

_WAKE = "To continue: run trn wake in the folder of cdk.json, or trn run --wake. Network and file systems still exist."


def _terms(settings: Mapping[str, str]) -> PilotTerms:
    ends, budget, idle = settings.get("ENDS"), settings.get("BUDGET_USD"), settings.get("IDLE_MINUTES")
    return PilotTerms(
        nodes=int(settings["NODES"]),
        ends=PilotEnd.from_text(ends) if ends else None,
        destroys=settings.get("ENDS_ACTION") == "destroy",
        warning=timedelta(hours=int(settings["WARNING_HOURS"])),
        budget_usd=int(budget) if budget else None,
        in_capacity_block=bool(settings.get("CAPACITY_BLOCK")),
        idle=timedelta(minutes=int(idle)) if idle else None,
    )


def _is_deletable(decision: ClockDecision, snapshot: ClusterSnapshot) -> bool:
    """Whether to delete the stack now: once no nodes are left, because a placement group in use cannot be deleted, or
    once the time for their termination is over."""
    if not decision.delete or decision.ended is None or not snapshot.settled:
        return False
    return not (snapshot.nodes_left or snapshot.desired) or snapshot.now >= _nodes_deadline(decision.ended)


def _not_deleted(decision: ClockDecision) -> str:
    """The stored mark that people were notified that the stack of an ended pilot still exists."""
    return f"not deleted: {decision.stopped}"


def _nodes_deadline(ended: datetime) -> datetime:
    """When the time for the termination of an ended pilot's nodes is over."""
    return ended + timedelta(minutes=facts()["pilot"]["minutes_for_nodes_to_go"])


def _time_left(left: timedelta) -> str:
    """The time left, for people: in whole hours, or in whole minutes below two hours."""
    minutes = max(0, left // timedelta(minutes=1))
    return f"{minutes // 60} h" if minutes >= 2 * 60 else f"{minutes} min"
