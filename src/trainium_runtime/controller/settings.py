"""The settings of the controller, from its construct."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from trainium_runtime.node_metrics import MetricLines
from trainium_runtime.pilot_clock import PilotTerms
from trainium_runtime.pilot_end import Deadline


@dataclass(frozen=True, kw_only=True)
class PilotOptions:
    """The settings of the pilot.

    Attributes:
        topic: ARN of the topic whose tags store the state of the clock.
        notices: ARN of the topic of its notices, which may be the same one.
        asleep: Whether `trn sleep` put the cluster to sleep.
        budget: Name of the budget that stops the nodes, if there is one.
        capacity_block: ID of the Capacity Block of the nodes, if they have one.
        stack_deletion: ARN of the function that deletes the stack at the end, if it is deleted.
    """

    topic: str
    notices: str
    terms: PilotTerms
    asleep: bool = False
    budget: str | None = None
    capacity_block: str | None = None
    stack_deletion: str | None = None


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """The settings.

    Attributes:
        cluster: Name of the cluster.
        group: Name of the nodes' Auto Scaling group. None: a service runs the nodes.
        records_bucket: Bucket of the node records and the membership.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        pilot: The pilot. None if it does not stop nodes and does not end.
        metrics: The metrics that it prints on a schedule. None: it prints none.
        job_notices: ARN of the topic that gets a message at the end of each job. None: no topic.
    """

    cluster: str
    stack_id: str
    records_bucket: str
    group: str | None = None
    replacements: int = 0
    pilot: PilotOptions | None = None
    metrics: MetricLines | None = None
    job_notices: str | None = None

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> "ControllerSettings":
        """The settings from environment variables, or from the property of a custom resource with the same names."""
        return cls(
            cluster=variables["CLUSTER"],
            stack_id=variables["STACK_ID"],
            group=variables.get("GROUP"),
            records_bucket=variables["RECORDS_BUCKET"],
            replacements=int(variables.get("REPLACEMENTS", "0")),
            pilot=_pilot(variables) if "TOPIC" in variables else None,
            metrics=_metrics(variables) if "METRICS" in variables else None,
            job_notices=variables.get("JOB_NOTICES"),
        )


def _metrics(variables: Mapping[str, str]) -> MetricLines:
    return MetricLines(cluster=variables["CLUSTER"], by_node=variables["METRICS"] == "nodes")


def _pilot(variables: Mapping[str, str]) -> PilotOptions:
    ends, budget, idle = (variables.get(name) for name in ("ENDS", "BUDGET_USD", "IDLE_MINUTES"))
    return PilotOptions(
        topic=variables["TOPIC"],
        notices=variables.get("NOTICES", variables["TOPIC"]),
        terms=PilotTerms(
            nodes=int(variables["NODES"]),
            ends=Deadline.from_text(ends) if ends else None,
            destroys="STACK_DELETION" in variables,
            warning=timedelta(hours=int(variables["WARNING_HOURS"])),
            budget_usd=int(budget) if budget else None,
            in_capacity_block="CAPACITY_BLOCK" in variables,
            idle=timedelta(minutes=int(idle)) if idle else None,
        ),
        asleep=variables["ASLEEP"] == "true",
        budget=variables.get("BUDGET"),
        capacity_block=variables.get("CAPACITY_BLOCK"),
        stack_deletion=variables.get("STACK_DELETION"),
    )
