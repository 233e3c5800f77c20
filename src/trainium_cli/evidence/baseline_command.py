"""`trn baseline`: the GPU plan to compare a Trainium plan with."""

import json
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import click

from trainium_cli.completion_values import complete_type
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.money.estimate_command import aws_prices
from trainium_cli.terminal import console, pairs, print_json, say, table
from trainium_core.costs.estimate import estimate
from trainium_core.evidence.baseline import Baseline, BaselineError, candidates
from trainium_core.evidence.baseline import baseline as baseline_of
from trainium_core.plan import Plan
from trainium_core.plan.context import settings_given
from trainium_core.prices.price import ON_DEMAND, PricedItem
from trainium_core.prices.quotes import quotes
from trainium_core.problems import SETTING_PREFIX

_FILE = "cdk.json"
_FOLDER = Path("gpu-baseline")


@click.command()
@click.option(
    "--type",
    "chosen",
    metavar="TYPE",
    shell_complete=complete_type,
    help="GPU type. Default: the most preferred type that the region offers and whose price is known.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Write {_FILE} of the GPU cluster into this folder, such as {_FOLDER}.",
)
@click.option("--offline", is_flag=True, help="Use only trn:prices and the prices in this package.")
@plan_options
@pass_invocation
def baseline(invocation: Invocation, chosen: str | None, output: Path | None, offline: bool) -> ExitCode:
    """Show the GPU plan to compare a Trainium plan with.

    Proposes a GPU type that the region offers at a known price, says why, and derives the settings of a second cluster
    with the same network, end, budget and job permissions. To use other commands with this cluster, pass its cdk.json
    with --file. Nothing changes on AWS, and an existing file is never overwritten.

    Exit code 0: shown or written. 1: no GPU type fits the plan, or that of --type does not. 2: a plan or another option
    is invalid.
    """
    plan = invocation.plan()
    file = invocation.cdk_json or Path(_FILE)
    stated = settings_given(invocation.cdk_json, invocation.overrides)
    if output is not None and not file.exists():
        raise click.UsageError(f"--output needs the {_FILE} of the Trainium cluster: run in its folder, or pass --file")
    try:
        proposal = baseline_of(plan, stated, file.parent, chosen=chosen, priced=_priced(plan, offline=offline))
    except BaselineError as error:
        raise CliError(f"No baseline: {error}.", ExitCode.NOT_READY) from error
    written = None if output is None else _write(proposal, file, output)
    hourly = {
        name: _hourly(side_plan, offline=offline) for name, side_plan in (("trainium", plan), ("gpu", proposal.plan))
    }
    where = _options(proposal, file, output)
    steps = _steps(where)
    if invocation.as_json:
        print_json(
            {
                "instance_type": proposal.plan.instance_type,
                "why": proposal.why,
                "skipped": dict(proposal.skipped),
                "settings": {f"{SETTING_PREFIX}{key}": value for key, value in proposal.settings.items()},
                "left_out": {f"{SETTING_PREFIX}{key}": why for key, why in proposal.left_out.items()},
                "notes": list(proposal.notes),
                "running_hour": hourly,
                "file": None if written is None else str(written),
                "next": list(steps),
            }
        )
        return ExitCode.OK
    _show(plan, proposal, hourly)
    if written is not None:
        say(f"\nWritten: {written}")
    elif file.exists():
        say(f"\nNot written. To write it, repeat the command with --output {_default_folder(file)}.")
    say("Next:")
    for step in steps:
        say(f"  {step}")
    return ExitCode.OK


def _priced(plan: Plan, *, offline: bool) -> Collection[str]:
    """The candidates with a known on-demand price in the region."""
    items = {name: PricedItem(product=ON_DEMAND, region=plan.region, instance_type=name) for name in candidates(plan)}
    found = quotes(items.values(), own=plan.prices, aws=None if offline else aws_prices(plan.region)).prices
    return {name for name, item in items.items() if (price := found.get(item)) and price.usd is not None}


def _hourly(plan: Plan, *, offline: bool) -> str:
    return str(estimate(plan, aws=None if offline else aws_prices(plan.region)).running_hour)


def _show(plan: Plan, proposal: Baseline, hourly: Mapping[str, str]) -> None:
    out = console()
    rows = [
        (title, f"{side_plan.nodes} x {side_plan.instance_type}", _devices(side_plan), side_plan.capacity, hourly[key])
        for title, key, side_plan in (("Trainium", "trainium", plan), ("GPU", "gpu", proposal.plan))
    ]
    out.print(table(["", "Nodes", "Each node", "Capacity", "Running, per hour"], rows, right=["Running, per hour"]))
    details = [("why", proposal.why)]
    details += [("skipped", f"{name}: {why}") for name, why in proposal.skipped.items()]
    details += [("left out", f"{SETTING_PREFIX}{key}: {why}") for key, why in proposal.left_out.items()]
    details += [("note", note) for note in proposal.notes]
    out.print()
    out.print(pairs(details, label_width=max(len(label) for label, _ in details)))


def _devices(plan: Plan) -> str:
    kind = plan.type
    return f"{kind.devices} {kind.accelerator}, {kind.total_device_memory_gib} GiB"


def _default_folder(file: Path) -> Path:
    return file.parent / _FOLDER


def _options(proposal: Baseline, file: Path, output: Path | None) -> str:
    if output is not None or file.exists():
        return f"--file {shlex.quote(str((output or _default_folder(file)) / _FILE))}"
    return " ".join(f"-c {SETTING_PREFIX}{key}={shlex.quote(str(value))}" for key, value in proposal.settings.items())


def _steps(where: str) -> Sequence[str]:
    return (
        *(f"trn {command} {where}" for command in ("capacity", "estimate", "preflight", "deploy", "nodes")),
        f"trn run train.py {where}",
        f"trn destroy {where}",
        f"trn audit {where}",
    )


def _cdk_app(app: str, folder: Path, output: Path) -> str:
    """The value of `app` for a cdk.json in `output` that uses the app of `folder`: a command, or a folder of templates.

    The command runs in `folder`. The CDK CLI sets CDK_OUTDIR relative to `output`, so it is made absolute.
    """
    if (folder / app).is_dir():
        return str(folder / app)
    templates = '"$(cd "$OLDPWD" && realpath "$CDK_OUTDIR")"'
    return f"cd {shlex.quote(os.path.relpath(folder, output))} && CDK_OUTDIR={templates} {app}"


def _write(proposal: Baseline, file: Path, output: Path) -> Path:
    """Write the cdk.json of the GPU cluster: a copy of the Trainium cluster's, with other settings."""
    target = output / _FILE
    if target.exists():
        raise click.UsageError(f"{target} exists: name another folder, or remove this file")
    document = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
    context = cast("dict[str, Any]", document.get("context", {}))
    others = {key: value for key, value in context.items() if not key.startswith(SETTING_PREFIX)}
    settings = {**proposal.settings, "project_id": str(uuid4())}
    document["context"] = {f"{SETTING_PREFIX}{key}": value for key, value in settings.items()} | others
    output.mkdir(parents=True, exist_ok=True)
    app = document.get("app")
    if isinstance(app, str):
        document["app"] = _cdk_app(app, file.absolute().parent, output.absolute())
    target.write_text(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n", encoding="utf-8")
    return target
