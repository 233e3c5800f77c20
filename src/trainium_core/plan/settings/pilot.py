"""The end and the budget of a pilot: when it ends, what happens then, who is notified, and what it may cost."""

from typing import Literal, get_args

from trainium_core.facts import facts
from trainium_core.plan.pilot_end import EndForm
from trainium_core.setting_schema.forms import Choice, Switch, WholeNumber
from trainium_core.setting_schema.setting import email_address, section, setting

EndsAction = Literal["sleep", "destroy"]
ENDS_ACTIONS: tuple[EndsAction, ...] = get_args(EndsAction)
BudgetAction = Literal["notify", "stop"]
BUDGET_ACTIONS: tuple[BudgetAction, ...] = get_args(BudgetAction)
_IDLE = facts()["pilot"]


@section
class PilotSettings:
    """The end and the budget. `ends` is text for read_pilot_end()."""

    ends: str | None = setting(
        "ends",
        EndForm(),
        default=None,
        default_text="none: the nodes run and are billed until you stop them",
        meaning="when the pilot ends: a date and time, or a duration from the first deployment or the start of a later "
        "Capacity Block",
    )
    ends_action: EndsAction | None = setting(
        "ends_action",
        Choice(ENDS_ACTIONS),
        default=None,
        default_text="sleep (no nodes; cache and file systems stay); destroy for PcsStack, which cannot sleep",
        meaning="what happens at the end: sleep terminates the nodes, destroy deletes the stack; PcsStack "
        "accepts only destroy",
    )
    warning_hours: int = setting(
        "warning_hours",
        WholeNumber(1, 336),
        default=24,
        default_text="{}; if the pilot is shorter than twice this time, half of the pilot",
        meaning="hours before the end at which SNS sends a warning",
    )
    notify_email: str | None = setting(
        "notify_email",
        email_address(),
        default=None,
        default_text="none: subscribe to the topic in the stack's outputs",
        meaning="e-mail address for notices and alarms; its owner must confirm the subscription",
    )
    job_notices: bool = setting(
        "job_notices",
        Switch(),
        default=False,
        meaning="whether the topic of notices gets a message at the end of each job",
    )
    budget_usd: int | None = setting(
        "budget_usd",
        WholeNumber(1),
        default=None,
        meaning="budget in US dollars per calendar year, in AWS Budgets, which lags by up to a day",
    )
    budget_action: BudgetAction = setting(
        "budget_action",
        Choice(BUDGET_ACTIONS),
        default="notify",
        default_text="{} (at 80% and 100% of the budget spent, and at 100% forecast)",
        meaning="what happens when the budget is spent: notify sends a message; stop also terminates the nodes, and "
        "launches none until you raise the budget",
    )

    idle_minutes: int | None = setting(
        "idle_minutes",
        WholeNumber(_IDLE["shortest_idle_minutes"], _IDLE["longest_idle_minutes"]),
        default=None,
        default_text="none: unused nodes keep running",
        meaning="minutes without a job and without a process that uses a Neuron device or GPU, after which the nodes "
        "are terminated; `trn wake` launches new nodes",
    )

    def action_at_end(self, *, can_sleep: bool) -> EndsAction:
        """The configured action; by default `sleep`, or `destroy` for a stack that cannot sleep."""
        return self.ends_action or ("sleep" if can_sleep else "destroy")

    @property
    def stops_at_budget(self) -> bool:
        return self.budget_usd is not None and self.budget_action == "stop"
