"""`trn tco`: twelve months of a workload, from its bench records, plans and a file of stated numbers."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from importlib.metadata import version
from json import loads
from pathlib import Path

import click

from trainium_cli.evidence.file_mistakes import file_argument, mistakes_listed
from trainium_cli.evidence.results_files import write_results
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.money.estimate_command import aws_prices
from trainium_cli.terminal import console, print_json, say, table
from trainium_core.costs.estimate import Estimate, dollars, stack_cost_items
from trainium_core.costs.estimate import estimate as estimate_cost
from trainium_core.evidence.numbers import number
from trainium_core.evidence.record import Input, Record, RecordError, Tool, read_record, record_text
from trainium_core.evidence.tco import (
    Tco,
    tco_records,
    tco_warnings,
    total_metric,
)
from trainium_core.evidence.tco import tco as tco_of
from trainium_core.evidence.tco_file import SideFile, read_tco_file
from trainium_core.evidence.tco_side import Driver, SideCost, TcoError, check_plan
from trainium_core.plan.context import plan_from_file


@click.command()
@file_argument("tco.toml")
@click.option("--offline", is_flag=True, help="Price plans only with trn:prices and the prices in this package.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a results file of each side into this folder, for `trn report`.",
)
@json_option
@pass_invocation
def tco(invocation: Invocation, file: Path, offline: bool, output: Path | None) -> ExitCode:
    """Show the total cost of ownership (TCO) of a workload.

    Computes the cost of twelve months. FILE.toml names the bench record of one or two sides, the work of twelve months,
    and numbers with source and date. If a side names a plan, the other lines of `trn estimate` are added. Amounts that
    need a throughput that was not measured are unknown, never assumed. With two comparable sides, the output has the
    saving, and after how many hours of work the port has paid off.

    Exit code 0: the total of the first side is known. 2: a file has mistakes or contradicts another. 3: the total is
    unknown.
    """
    costs, inputs = _computed(file, offline=offline)
    made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    records = tuple(tco_records(costs, made=made, tool=Tool(version=version("trainium-cdk")), inputs=inputs))
    files = [] if output is None else [str(write_results(record, output)) for record in records]
    if invocation.as_json:
        print_json({"records": [loads(record_text(record)) for record in records]})
    else:
        _show(costs)
        if files:
            say(f"\nWritten: {', '.join(files)}")
    return ExitCode.OK if total_metric(costs.sides[0]).value is not None else ExitCode.UNKNOWN


def _computed(file: Path, *, offline: bool) -> tuple[Tco, Sequence[Input]]:
    with mistakes_listed(file):
        stated = read_tco_file(file.read_text(encoding="utf-8"))
    inputs = [_input(file, file.name)]
    records, estimates = list[Record](), list[Estimate | None]()
    try:
        for side in stated.sides:
            record = _record(file.parent / side.record)
            records.append(record)
            inputs.append(_input(file.parent / side.record, side.record))
            estimates.append(_estimated(file.parent, side, record, offline=offline))
            if side.plan is not None:
                inputs.append(_input(file.parent / side.plan, side.plan))
        return tco_of(stated, records, estimates), inputs
    except TcoError as error:
        raise CliError(f"{file}: {error}.", ExitCode.BAD_INPUT) from error


def _record(path: Path) -> Record:
    try:
        return read_record(path.read_bytes())
    except RecordError as error:
        raise CliError(f"{path}: {error}.", ExitCode.BAD_INPUT) from error


def _input(path: Path, name: str) -> Input:
    content = path.read_bytes()
    return Input(path=name, sha256=sha256(content).hexdigest(), bytes=len(content))


def _estimated(folder: Path, side: SideFile, record: Record, *, offline: bool) -> Estimate | None:
    if side.plan is None:
        return None
    plan = plan_from_file(folder / side.plan, ())
    check_plan(side, record, plan.instance_type, plan.nodes)
    return estimate_cost(plan, aws=None if offline else aws_prices(plan.region), items=stack_cost_items)


def _show(costs: Tco) -> None:
    out = console()
    for side in costs.sides:
        record = side.record
        title = f"{side.name}: {record.workload.name} on {record.hardware.machines}, side {record.side}"
        out.print(title, style="bold")
        out.print("US dollars for twelve months, before tax.\n")
        out.print(table(["Line", "USD", "How"], _line_rows(side), right=["USD"], wrapping=["How"]))
        say("")
    if costs.comparison is not None:
        say(f"Saving of {costs.sides[0].name}: {_shown_saving(costs)}")
        say(f"Break-even: {_shown_break_even(costs)}\n")
    swings = costs.swings
    if swings:
        say(f"Sensitivity of the {costs.result_name} of {costs.sides[0].name}, the largest first:\n")
        columns = ["Driver", "Low", "High", "USD at low", "USD at high"]
        rows = [
            (swing.driver.label, *_range(swing.driver), _dollars(swing.at_low), _dollars(swing.at_high))
            for swing in swings
        ]
        out.print(table(columns, rows, right=columns[1:], wrapping=["Driver"]))
        say("")
    known = [driver for driver in costs.drivers.values() if driver.value is not None]
    out.print(table(["Number", "Value", "Source"], _driver_rows(known), right=["Value"], wrapping=["Number", "Source"]))
    for warning in tco_warnings(costs):
        out.print(f"warning: {warning}", style="yellow")


def _line_rows(side: SideCost) -> Iterator[Sequence[str]]:
    for line in side.lines:
        amount = side.amount(line, side.values)
        how = line.formula if amount is not None else side.why_unknown(line)
        yield line.name, "unknown" if amount is None else _dollars(amount), how
    total = total_metric(side)
    yield "Total", "unknown" if total.value is None else _dollars(total.value), total.why_null or "sum of the lines"


def _driver_rows(drivers: Sequence[Driver]) -> Iterator[Sequence[str]]:
    for driver in drivers:
        value = f"{number(driver.value or 0.0)} {driver.unit}".rstrip()
        yield driver.label, value, ", ".join(filter(None, (driver.source, driver.date)))


def _range(driver: Driver) -> tuple[str, str]:
    low, high = (f"{number(end or 0.0)} {driver.unit}".rstrip() for end in (driver.low, driver.high))
    return low, high


def _shown_saving(costs: Tco) -> str:
    metric = costs.saving
    if metric.value is None:
        return f"{metric.why_null}"
    known = None if metric.low is None or metric.high is None else f"{_dollars(metric.low)} to {_dollars(metric.high)}"
    ends = f"{known} at the ends of the intervals of both throughputs" if known else metric.why_null
    return f"{_dollars(metric.value)} ({'; '.join(filter(None, (ends, costs.different_options)))})"


def _shown_break_even(costs: Tco) -> str:
    metric = costs.break_even
    if metric.value is None:
        return f"{metric.why_null}"
    nodes = costs.sides[0].record.hardware.nodes
    of_nodes = f", {number(metric.value * nodes)} node-hours" if nodes else ""
    return f"after {number(metric.value)} h of work{of_nodes} ({metric.method})"


def _dollars(usd: float) -> str:
    return f"-{dollars(Decimal(-usd))}" if usd < 0 else dollars(Decimal(usd))
