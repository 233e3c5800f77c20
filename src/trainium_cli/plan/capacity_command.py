"""`trn capacity`: where and when the plan's nodes could run, and the price."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import click
from rich.text import Text

from trainium_cli.completion_values import complete_regions
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.mistakes import mistake
from trainium_cli.plan.block_extensions import extensions_as_json, planned_block, show_extensions
from trainium_cli.plan.plan_choices import WAYS_TO_GET_CAPACITY, chosen_regions, hours_option
from trainium_cli.terminal import console, print_json, shell_lines, table
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.capacity import INSTANCE_PLATFORM
from trainium_core.capacity.option import CapacityOption, Prospect, outlook
from trainium_core.capacity.region_options import CapacityRequest
from trainium_core.capacity.search import CapacitySearch, search_capacity
from trainium_core.costs.estimate import dollars
from trainium_core.plurals import count
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, Origin
from trainium_core.problems import SETTING_PREFIX
from trainium_runtime.aws_service import ATTEMPTS, CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS
from trainium_runtime.pilot_clock import notice_before_block_end, termination_minutes

_EXIT_CODES = {
    "something": ExitCode.OK,
    "nothing": ExitCode.NOT_READY,
    "unknown": ExitCode.UNKNOWN,
}


def _latest_start(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """The end of the given day in UTC."""
    if value is None:
        return None
    now = datetime.now(UTC)
    allowed = f"a day in UTC, {now:%Y-%m-%d} or later"
    try:
        day = date.fromisoformat(value)
    except ValueError as error:
        fix = f"write year, month and day, as in {now:%Y-%m-%d}"
        raise mistake("--start-by", value, allowed=allowed, fix=fix) from error
    end = datetime.combine(day, time.max, tzinfo=UTC)
    if end < now:
        raise mistake("--start-by", value, allowed=allowed, fix="specify a later day, or omit the option")
    return end


@click.command(
    epilog=f"""
    All regions are queried in parallel. A connection may take {CONNECT_TIMEOUT_SECONDS} s, a response
    {READ_TIMEOUT_SECONDS} s; a call that is throttled or not answered is tried {ATTEMPTS} times in total. The result of
    a call that fails is unknown.

    Exit code 0: an option could run now or later. 1: no option, or only unlikely ones. 3: no option could run, and a
    result is unknown. """,
)
@hours_option
@click.option(
    "--regions",
    metavar="REGION,...",
    shell_complete=complete_regions,
    help="Search these regions. Default: all that offer the type.",
)
@click.option(
    "--start-by",
    callback=_latest_start,
    metavar="YYYY-MM-DD",
    help="The last day, in UTC, on which the nodes may start. Default: any.",
)
@plan_options
@pass_invocation
def capacity(invocation: Invocation, hours: int, regions: str | None, start_by: datetime | None) -> ExitCode:
    """Show where and when the plan's nodes could run, and for how much.

    For the plan's type and number of nodes, regardless of trn:capacity: the account's reservations, on demand, spot,
    and Capacity Blocks for sale, ranked across regions. Options that could start now come first, then later ones,
    then unlikely, unknown and unavailable ones; within each group, prepaid options come first, then the others by
    their hourly price.

    If trn:reservation_id names a Capacity Block, extensions of it by --hours are shown too.

    Read-only: you buy Capacity Blocks and extensions yourself, with the AWS CLI commands that are shown.
    """
    plan = invocation.plan(ignoring=WAYS_TO_GET_CAPACITY)
    chosen, clients = chosen_regions(plan, regions), invocation.clients
    block = planned_block(invocation)
    request = CapacityRequest(plan=plan, hours=hours, now=datetime.now(UTC), start_by=start_by, block=block)
    with waiting(f"Asking AWS in {count(len(chosen), 'region')} ..."):
        found = search_capacity(request, chosen, lambda region: AwsAccount(region, clients=clients))
    if invocation.as_json:
        print_json(found_as_json(request, found, invocation.overrides))
    else:
        show_found(request, found, invocation.overrides)
    return _EXIT_CODES[outlook(found.options)]


_WORDS = {CAPACITY_BLOCK: "Capacity Block"}
_STYLES: dict[Prospect, str] = {
    "now": "green",
    "later": "green",
    "unlikely": "yellow",
    "unknown": "magenta",
    "no": "dim",
}
_ORIGINS: dict[Origin, str] = {"yours": "trn:prices", "AWS": "AWS", "snapshot": "snapshot in this package"}


def found_as_json(request: CapacityRequest, found: CapacitySearch, overrides: Sequence[str]) -> dict[str, Any]:
    """The options and the prices behind them. Amounts are in US dollars; unknown amounts are null."""
    return {
        "outlook": outlook(found.options),
        "instance_type": request.plan.instance_type,
        "nodes": request.plan.nodes,
        "hours": request.hours,
        "options": [
            {
                **{key: float(value) if isinstance(value, Decimal) else value for key, value in asdict(option).items()},
                "next": next_command(option, overrides),
                "settings": next_settings(option, overrides),
            }
            for option in found.options
        ],
        "extensions": extensions_as_json(request, found),
        "prices": _sources(found),
        "prices_unavailable": list(found.unavailable),
    }


def show_found(request: CapacityRequest, found: CapacitySearch, overrides: Sequence[str]) -> None:
    out, plan = console(), request.plan
    out.print(f"{count(plan.nodes, 'node')} of {plan.instance_type} for {request.hours} h, US dollars\n", style="bold")
    ways = [option for option in found.options if option.prospect not in ("unknown", "no")]
    if ways:
        numbers = ["Hours", "Total", "Node-hour"]
        columns = ["", "Prospect", "What", "Region", "Zone ID", "Start (UTC)", *numbers, "Note"]
        rows = [[str(number), *_row(option)] for number, option in enumerate(ways, start=1)]
        out.print(table(columns, rows, right=["", *numbers], wrapping=["Note"]))
        out.print()
    rest = list(_rest(found.options))
    if rest:
        out.print(table(["Prospect", "What", "Why", "Regions"], rest, wrapping=["Why", "Regions"]))
        out.print()
    best = list(_best_per_purchase_option(ways))
    if best:
        out.print("Next command, for the best option of each kind:")
        for number, option in best:
            out.print(shell_lines(f"{number:>2}  {next_command(option, overrides)}"))
            if option.offering_id:
                _show_purchase(request, option, overrides)
        out.print()
    show_extensions(request, found)
    for note in _notes(found, plan.instance_type):
        out.print(note)
    out.print(f"\n{_verdict(found.options)}", style="bold")


def _verdict(options: Sequence[CapacityOption]) -> str:
    """How many options could start the nodes, and the best one."""
    result, counts = outlook(options), Counter(option.prospect for option in options)
    if result == "unknown":
        return "Unknown: no option could start the nodes, and a result is missing."
    if result == "nothing":
        unlikely = counts["unlikely"]
        return f"No option could start the nodes{f', except {unlikely} unlikely' if unlikely else ''}."
    place = ", ".join(filter(None, (_description(options[0]), options[0].region, options[0].zone_id)))
    return f"Options: {counts['now']} now, {counts['later']} later. Best: 1, {place}."


def _rest(options: Sequence[CapacityOption]) -> Iterator[tuple[str | Text, ...]]:
    """Unknown and unavailable options, one row per prospect, reason and set of regions."""
    regions: dict[tuple[Prospect, str, str], dict[str, None]] = {}
    for option in options:
        if option.prospect in ("unknown", "no"):
            key = (option.prospect, _description(option), _note(option))
            regions.setdefault(key, {})[option.region] = None
    ways: dict[tuple[Prospect, str, tuple[str, ...]], list[str]] = {}
    for (prospect, what, why), region_names in regions.items():
        ways.setdefault((prospect, why, tuple(region_names)), []).append(what)
    for (prospect, why, region_names), descriptions in ways.items():
        yield Text(prospect, _STYLES[prospect]), "\n".join(descriptions), why, ", ".join(region_names)


def _show_purchase(request: CapacityRequest, option: CapacityOption, overrides: Sequence[str]) -> None:
    """Show what the command buys, and the settings to write afterwards."""
    out, plan = console(), request.plan
    start = f"{option.start:%Y-%m-%d %H:%M}" if option.start else "now"
    price = option.note if option.total is None else dollars(option.total)
    when = f"from {start} to {option.end:%Y-%m-%d %H:%M} UTC"
    out.print(f"    buys {plan.nodes} x {plan.instance_type} in {option.zone_id} {when} for {price}.")
    out.print("    Afterwards, write to cdk.json, with the CapacityReservationId that the command prints:")
    for key, value in (next_settings(option, overrides) or {}).items():
        out.print(f'      "{key}": "{value or "CapacityReservationId"}",')


def next_command(option: CapacityOption, overrides: Sequence[str]) -> str | None:
    """The next command for an option; None for an unknown or unavailable option.

    A Capacity Block for sale is bought with the AWS CLI. Other options are checked with the settings of next_settings.
    """
    settings = next_settings(option, overrides)
    if settings is None:
        return None
    if option.offering_id:
        return (
            f"aws ec2 purchase-capacity-block --capacity-block-offering-id {option.offering_id} "
            f"--instance-platform {INSTANCE_PLATFORM} --region {option.region}"
        )
    words = (word for key, value in settings.items() for word in ("-c", f"{key}={value}"))
    return shlex.join(["trn", "preflight", *words])


def next_settings(option: CapacityOption, overrides: Sequence[str]) -> dict[str, str | None] | None:
    """The settings to write to cdk.json for an option, by key; None for an unknown or unavailable option.

    They include the -c options of `trn capacity`, except those that the option replaces or that the search ignored. The
    reservation ID of a Capacity Block for sale is None: the purchase returns it.
    """
    if option.prospect in ("unknown", "no"):
        return None
    chosen: dict[str, str | None] = {SETTING_PREFIX + name: value for name, value in option.settings.items()}
    if option.offering_id:
        chosen[f"{SETTING_PREFIX}reservation_id"] = None
    replaced = {*chosen, *(SETTING_PREFIX + name for name in WAYS_TO_GET_CAPACITY)}
    given = {key: value for key, _, value in (override.partition("=") for override in overrides)}
    return {key: value for key, value in given.items() if key not in replaced} | chosen


def _best_per_purchase_option(options: Sequence[CapacityOption]) -> Iterator[tuple[int, CapacityOption]]:
    """The first option of each kind that could run now or later, with its row number in the table.

    Prepaid options form a separate kind.
    """
    seen: set[tuple[str, bool]] = set()
    for number, option in enumerate(options, start=1):
        way = (option.capacity, option.paid_for)
        if option.prospect in ("now", "later") and way not in seen:
            seen.add(way)
            yield number, option


def _row(option: CapacityOption) -> tuple[str | Text, ...]:
    return (
        Text(option.prospect, _STYLES[option.prospect]),
        "\n".join(filter(None, (_description(option), option.reservation_id or option.offering_id))),
        option.region,
        option.zone_id or "",
        f"{option.start:%Y-%m-%d %H:%M}" if option.start else "now",
        "" if option.hours is None else f"{option.hours:.4g}",
        _amount(option, option.total),
        _amount(option, option.hourly),
        "; ".join(filter(None, ("" if option.score is None else f"score {option.score}", option.note))),
    )


def _description(option: CapacityOption) -> str:
    return _WORDS.get(option.capacity, option.capacity)


def _note(option: CapacityOption) -> str:
    return option.note if option.reservation_id is None else f"{option.reservation_id}: {option.note}"


def _amount(option: CapacityOption, usd: Decimal | None) -> str:
    if option.paid_for:
        return "paid for"
    return "unknown" if usd is None else dollars(usd)


def _notes(found: CapacitySearch, instance_type: str) -> Iterator[str]:
    ways = {option.capacity for option in found.options}
    if ON_DEMAND in ways:
        yield "A zone that offers a type may have no free capacity. Quotas apply separately."
    if SPOT in ways:
        yield "Score: the spot placement score, 1 to 10, not a guarantee. A single type has a low score."
    if CAPACITY_BLOCK in ways:
        yield "An offered Capacity Block may be sold at any time. It is paid in advance and cannot be cancelled."
        minutes, early = termination_minutes(instance_type), notice_before_block_end(instance_type)
        yield (
            f"EC2 terminates the nodes in a Capacity Block {minutes} minutes before its end. Jobs get a notice "
            f"{early // timedelta(minutes=1)} minutes before its end, also on Slurm."
        )
    for origin, words in _ORIGINS.items():
        days = sorted(price.date for price in found.prices if price.origin == origin)
        if days:
            since = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
            yield f"Prices by the hour: {words}, {since}, before tax and discounts. --json has each source."
    for reason in found.unavailable:
        yield f"AWS prices are unavailable: {reason}"


def _sources(found: CapacitySearch) -> list[str]:
    return sorted({f"{price.origin}, {price.date}: {price.source}" for price in found.prices})
