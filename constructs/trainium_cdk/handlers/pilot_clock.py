"""The clock of a pilot: every few minutes, does what is right at the time, whatever was or was not done before.

Called by a schedule, by AWS Budgets over SNS when the budget is spent, and by the fleet gate, which is answered how
many nodes to wait for. It only ever turns the nodes off and on: everything else is CloudFormation's.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_core.naming import STOPPED_TAG, WARNED_TAG
from trainium_core.pilot_clock import CapacityBlock, ClockDecision, Memory, PilotTerms, clock_decision
from trainium_core.pilot_end import read_pilot_end, utc_text

GATE_EVENT = {"kind": "gate"}
"""What the fleet gate calls with."""

_LONGEST_SUBJECT = 100  # characters (SNS API reference, Publish)


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    """Answers with `nodes` and `why`. Raises ExceptionGroup with everything that could not be done."""
    import boto3

    clock = Clock(
        os.environ,
        autoscaling=boto3.client("autoscaling"),
        cloudformation=boto3.client("cloudformation"),
        ec2=boto3.client("ec2"),
        sns=boto3.client("sns"),
    )
    decision = clock.look(event, now=datetime.fromtimestamp(time.time(), UTC))
    return {"nodes": decision.nodes, "why": decision.why}


class Clock:
    """One look at the time, and what follows from it. `settings`: the variables that the construct gives."""

    def __init__(
        self, settings: Mapping[str, str], *, autoscaling: Any, cloudformation: Any, ec2: Any, sns: Any
    ) -> None:
        self._settings = settings
        self._autoscaling, self._cloudformation, self._ec2, self._sns = autoscaling, cloudformation, ec2, sns
        self._terms = _terms(settings)

    def look(self, event: Mapping[str, Any], *, now: datetime) -> ClockDecision:
        groups = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self._settings["GROUP"]])
        if not groups["AutoScalingGroups"]:
            return ClockDecision(nodes=0, why="there is no Auto Scaling group (any more)")
        group, stack = groups["AutoScalingGroups"][0], self._stack()
        tags = {tag["Key"]: tag["Value"] for tag in group.get("Tags", [])}
        memory = Memory(warned=tags.get(WARNED_TAG), stopped=tags.get(STOPPED_TAG))
        decision = clock_decision(
            now=now,
            terms=self._terms,
            deployed=stack["CreationTime"],
            block=self._block(),
            asleep=self._settings["ASLEEP"] == "true",
            memory=memory,
            budget_reached=self._says_spent(event),
        )
        _print(nodes=decision.nodes, why=decision.why, there=group["DesiredCapacity"])
        # While CloudFormation works on the stack, nodes come back only when its own gate asks for them.
        settled = not stack["StackStatus"].endswith("_IN_PROGRESS")
        steps: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            (self._remember_stop, (decision, memory)),
            (self._stop, (decision, group)),
            (self._start, (decision, group, memory, settled or event.get("kind") == GATE_EVENT["kind"])),
            (self._warn, (decision, now)),
            (self._delete, (decision, group, stack["StackStatus"], settled)),
        ]
        troubles: list[Exception] = []
        for step, arguments in steps:
            try:
                step(*arguments)
            except Exception as error:  # one thing that cannot be done keeps none of the others from being done
                troubles.append(error)
        if troubles:
            raise ExceptionGroup("not all could be done", troubles)
        return decision

    def _stack(self) -> dict[str, Any]:
        return self._cloudformation.describe_stacks(StackName=self._settings["STACK_ID"])["Stacks"][0]

    def _block(self) -> CapacityBlock | None:
        from botocore.exceptions import ClientError

        block_id = self._settings.get("CAPACITY_BLOCK")
        if not block_id:
            return None
        try:
            found = self._ec2.describe_capacity_reservations(CapacityReservationIds=[block_id])["CapacityReservations"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidCapacityReservationId.NotFound":
                raise
            return None
        return CapacityBlock(
            block_id=block_id, begins=found[0]["StartDate"], ends=found[0]["EndDate"], state=found[0]["State"]
        )

    def _says_spent(self, event: Mapping[str, Any]) -> bool:
        """Whether the event is the message of AWS Budgets about the budget of this pilot, which its topic is for."""
        name = self._settings.get("BUDGET")
        messages = [record.get("Sns", {}).get("Message", "") for record in event.get("Records", [])]
        return name is not None and any(name in message for message in messages)

    def _remember_stop(self, decision: ClockDecision, memory: Memory) -> None:
        if decision.stopped and decision.stopped != memory.stopped:
            self._tag(STOPPED_TAG, decision.stopped)

    def _stop(self, decision: ClockDecision, group: Mapping[str, Any]) -> None:
        # A sleeping cluster has no nodes by its stack, which may be about to wake.
        if decision.stopped and group["DesiredCapacity"] > 0:
            self._resize(0)
            self._publish("nodes stopped", f"The nodes are being terminated: {decision.why}.", self._how_to_go_on())

    def _start(self, decision: ClockDecision, group: Mapping[str, Any], memory: Memory, may_start: bool) -> None:
        if not decision.nodes:
            return
        there = group["DesiredCapacity"] > 0
        # What a person set to none stays so, but for a Capacity Block: that the clock alone turns on.
        if not there and may_start and (self._terms.in_capacity_block or memory.stopped):
            self._resize(decision.nodes)
            self._publish("nodes started", f"{decision.nodes} nodes are being launched: {decision.why}.")
            there = True
        if there and memory.stopped:
            self._autoscaling.delete_tags(Tags=[self._tag_of(STOPPED_TAG)])

    def _warn(self, decision: ClockDecision, now: datetime) -> None:
        ends = decision.warn_of
        if ends is None:
            return
        after = "the stack is deleted" if self._terms.destroys else "the nodes are terminated, the rest stays"
        left = _hours(ends - now)
        self._publish(f"ends in {left}", f"The pilot ends at {utc_text(ends)}, in {left}. Then {after}.", _EXTEND)
        self._tag(WARNED_TAG, utc_text(ends))

    def _delete(self, decision: ClockDecision, group: Mapping[str, Any], status: str, settled: bool) -> None:
        # Without its nodes first: CloudFormation would give up on a placement group that is still in use.
        if not decision.delete or group["Instances"] or group["DesiredCapacity"] or not settled:
            return
        if status != "DELETE_FAILED":
            self._publish("is being deleted", f"The stack is being deleted: {decision.why}.")
        self._cloudformation.delete_stack(StackName=self._settings["STACK_ID"])
        _print(deleting=self._settings["STACK_ID"])

    def _resize(self, nodes: int) -> None:
        self._autoscaling.set_desired_capacity(
            AutoScalingGroupName=self._settings["GROUP"], DesiredCapacity=nodes, HonorCooldown=False
        )
        _print(resized_to=nodes)

    def _tag_of(self, key: str) -> dict[str, Any]:
        return {"ResourceType": "auto-scaling-group", "ResourceId": self._settings["GROUP"], "Key": key}

    def _tag(self, key: str, value: str) -> None:
        self._autoscaling.create_or_update_tags(
            Tags=[{**self._tag_of(key), "Value": value, "PropagateAtLaunch": False}]
        )

    def _publish(self, subject: str, *sentences: str) -> None:
        cluster = self._settings["CLUSTER"]
        self._sns.publish(
            TopicArn=self._settings["TOPIC"],
            Subject=f"{cluster} {subject}"[:_LONGEST_SUBJECT],
            Message="\n".join([*sentences, "", f"Cluster {cluster}, stack {self._settings['STACK_ID']}"]),
        )

    def _how_to_go_on(self) -> str:
        return "" if self._terms.in_capacity_block else _EXTEND


_EXTEND = "To go on: trn extend 8h, in the folder of cdk.json; after a spent budget, raise trn:budget_usd and deploy."


def _terms(settings: Mapping[str, str]) -> PilotTerms:
    ends, budget = settings.get("ENDS"), settings.get("BUDGET_USD")
    return PilotTerms(
        nodes=int(settings["NODES"]),
        ends=read_pilot_end(ends) if ends else None,
        destroys=settings.get("ENDS_ACTION") == "destroy",
        warning=timedelta(hours=int(settings["WARNING_HOURS"])),
        budget_usd=int(budget) if budget else None,
        in_capacity_block=bool(settings.get("CAPACITY_BLOCK")),
    )


def _hours(left: timedelta) -> str:
    """A time that is left, for people: hours, and below two of them minutes."""
    minutes = max(0, left // timedelta(minutes=1))
    return f"{minutes // 60} h" if minutes >= 2 * 60 else f"{minutes} min"


def _print(**what: Any) -> None:
    print(json.dumps(what))
