"""`trn plan`: the validated plan, and what derives from it."""

from datetime import UTC, datetime

import click

from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.plan.plan_report import plan_as_json, plan_sections
from trainium_cli.terminal import console, pairs, print_json, shell_lines
from trainium_core.engines.registry import CLUSTER, plan_warnings
from trainium_core.nodes.next_steps import torchrun_command
from trainium_core.plan.pilot_end import passed_end
from trainium_core.plurals import count
from trainium_core.problems import PlanError


@click.command()
@plan_options
@pass_invocation
def plan(invocation: Invocation) -> None:
    """Check the plan and show what follows from it.

    Works offline: it sends no request to AWS and creates nothing.

    Exit code 0: valid, possibly with warnings. 2: invalid, or trn:ends has passed.
    """
    checked = invocation.plan()
    if checked.pilot.ends and (problem := passed_end(checked.pilot.ends, now=datetime.now(UTC))):
        raise PlanError([problem])
    if invocation.as_json:
        print_json(plan_as_json(checked))
        return
    out = console()
    zone = checked.zone_id or f"the zone of {checked.network.subnet_id}"
    out.print(
        f"{checked.cluster_name}: {count(checked.nodes, 'node')} of {checked.instance_type}, {checked.capacity}, "
        f"in {checked.region} ({zone})",
        style="bold",
    )
    for title, rows in plan_sections(checked).items():
        out.print(f"\n{title}", style="bold")
        out.print(pairs(rows, label_width=15))
    if CLUSTER.key in checked.stacks:
        out.print("\nTraining, on every node" if checked.nodes > 1 else "\nTraining", style="bold")
        out.print(shell_lines(torchrun_command(checked)))
    out.print()
    for setting, warning in plan_warnings(checked).items():
        out.print(f"warning: trn:{setting}: {warning}", style="yellow")
    out.print("The plan is valid. `trn preflight` checks it against your account.", style="green")
