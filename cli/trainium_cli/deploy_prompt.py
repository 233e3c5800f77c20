"""What somebody consents to before a deployment, on one screen."""

from collections.abc import Sequence

import click

from trainium_cli.plan_report import pilot_end_text, when_idle_text
from trainium_cli.terminal import console, pairs
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import estimate
from trainium_core.engines.registry import ENGINES
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_core.prices.price import CAPACITY_BLOCK


def consents(plan: Plan, engines: Sequence[str], *, there: Sequence[str]) -> bool:
    """Show what is deployed, what it costs and when it ends, and ask. there: names of the stacks that are updated."""
    with waiting("Asking AWS for prices ..."):
        hour = estimate(plan, aws=AwsPrices(plan.region)).running_hour
    apart = [ENGINES[key].construct_id for key in engines if not ENGINES[key].ec2_shows_nodes]
    rows = [
        *(
            ("Stack", f"{name}: {'updated' if name in there else 'new'}")
            for name in (plan.stack_names[key] for key in engines)
        ),
        ("Nodes", f"{plan.nodes} x {plan.instance_type}, {plan.capacity}, in {plan.region}"),
        ("Price", f"{hour} per hour from when the nodes run{_paid_before(plan)}"),
        *([("", f"without what {', '.join(apart)} costs, by prices of its service")] if apart else []),
        ("End", pilot_end_text(plan)),
        *([("When idle", when_idle_text(plan))] if plan.pilot.idle_minutes else []),
        ("IAM", "roles and policies of the stacks are made or changed; --show-iam prints them first"),
    ]
    console().print()
    console().print(pairs(rows, label_width=max(len(label) for label, _ in rows)))
    return click.confirm("\nDeploy it?")


def _paid_before(plan: Plan) -> str:
    return "; the Capacity Block is paid already" if plan.capacity == CAPACITY_BLOCK else ""
