"""The settings of a pilot's end: when it is, what happens then, who is told, and what it may cost."""

from collections.abc import Mapping

from trainium_core.forms import Choice, WholeNumber
from trainium_core.pilot_end import EndForm
from trainium_core.setting import Setting, email_address

ENDS_ACTIONS = ("sleep", "destroy")
BUDGET_ACTIONS = ("notify", "stop")

PILOT_SETTINGS: Mapping[str, Setting] = {
    "ends": Setting(
        form=EndForm(),
        default="none: the nodes run, and are billed, until somebody stops them",
        meaning="when the pilot ends: a date and time, or a duration from the first deployment",
    ),
    "ends_action": Setting(
        form=Choice(ENDS_ACTIONS),
        default="sleep (no nodes; cache and file systems stay)",
        meaning="what happens at the end: sleep, or destroy as cdk destroy does; HyperPodStack takes destroy alone",
    ),
    "warning_hours": Setting(
        form=WholeNumber(1, 336),
        default="24; a pilot shorter than twice that is warned of at half time",
        meaning="hours before the end at which a warning is sent",
    ),
    "notify_email": Setting(
        form=email_address(),
        default="none: subscribe to the topic in the stack's outputs",
        meaning="where SNS sends warnings of end and budget; the address must confirm once",
    ),
    "budget_usd": Setting(
        form=WholeNumber(1),
        default="none",
        meaning="US dollars that the cluster may cost in a calendar year, by AWS Budgets, which lags by up to a day",
    ),
    "budget_action": Setting(
        form=Choice(BUDGET_ACTIONS),
        default="notify (at 80 % and 100 % spent, and 100 % forecast)",
        meaning="what happens once the budget is spent: a message alone, or no nodes until it is raised",
    ),
}
