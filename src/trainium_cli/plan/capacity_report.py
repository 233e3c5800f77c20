"""The ways to get capacity, as a table and as JSON."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from trainium_cli.layout import Text
from trainium_cli.terminal import console, shell_lines, table
from trainium_core.capacity.option import CapacityOption, Prospect, outlook
from trainium_core.capacity.region_options import CapacityRequest
from trainium_core.capacity.search import Found
from trainium_core.costs.estimate import dollars
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, Origin
from trainium_core.problems import SETTING_PREFIX

_WORDS = {CAPACITY_BLOCK: "Capacity Block"}
_STYLES: dict[Prospect, str] = {
    "now": "green",
    "later": "green",
    "unlikely": "yellow",
    "unknown": "magenta",
    "no": "dim",
}
_ORIGINS: dict[Origin, str] = {"yours": "your own", "AWS": "AWS", "snapshot": "snapshot in this package"}
_OUTLOOKS = {
    "something": "something could run",
    "nothing": "nothing, or nothing that is likely to run",
    "could not tell": "could not tell",
}


def found_as_json(request: CapacityRequest, found: Found, overrides: Sequence[str]) -> dict[str, Any]:
    """Amounts are US dollars, None where they are not known."""
    return {
        "outlook": outlook(found.options),
        "instance_type": request.plan.instance_type,
        "nodes": request.plan.nodes,
        "hours": request.hours,
        "options": [
            {
                **{key: float(value) if isinstance(value, Decimal) else value for key, value in asdict(option).items()},
                "next": next_command(request, option, overrides),
            }
            for option in found.options
        ],
        "prices": _sources(found),
        "aws_not_heard_about_prices": list(found.unavailable),
    }


def show_found(request: CapacityRequest, found: Found, overrides: Sequence[str]) -> None:
    out, plan = console(), request.plan
    nodes = "1 node" if plan.nodes == 1 else f"{plan.nodes} nodes"
    out.print(f"{nodes} of {plan.instance_type} for {request.hours} h, US dollars\n", style="bold")
    ways = [option for option in found.options if option.prospect not in ("unknown", "no")]
    if ways:
        numbers = ["Hours", "In all", "Node-hour", "Score"]
        columns = ["", "Prospect", "What", "Region", "Zone id", "Start (UTC)", *numbers, "Note"]
        rows = [[str(number), *_row(option)] for number, option in enumerate(ways, start=1)]
        out.print(table(columns, rows, right=["", *numbers], wrapping=["Note"]))
        out.print()
    rest = list(_rest(found.options))
    if rest:
        out.print(table(["Prospect", "What", "Why", "Regions"], rest, wrapping=["Why", "Regions"]))
        out.print()
    best = list(_best_of_each_way(ways))
    if best:
        out.print("What to type next, for the best of each way:")
        for number, option in best:
            out.print(shell_lines(f"{number:>2}  {next_command(request, option, overrides)}"))
        out.print()
    for note in _notes(found):
        out.print(note)
    out.print(f"\n{_OUTLOOKS[outlook(found.options)]}", style="bold")


def _rest(options: Sequence[CapacityOption]) -> Iterator[tuple[str | Text, ...]]:
    """What is unknown or not to be had, a row for each reason."""
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


def next_command(request: CapacityRequest, option: CapacityOption, overrides: Sequence[str]) -> str | None:
    """What to type to go on with an option; None where it is none. `overrides`: the -c that were given."""
    if option.prospect in ("unknown", "no"):
        return None
    chosen = {SETTING_PREFIX + name: value for name, value in option.settings.items()}
    kept = [override for override in overrides if override.partition("=")[0] not in chosen]
    given = [*kept, *(f"{key}={value}" for key, value in chosen.items())]
    start = ["trn", "preflight"]
    if option.buys_from:
        start = ["trn", "capacity", "buy", option.buys_from, "--hours", str(request.hours)]
        # A plan for a Capacity Block needs the id that buying it will give.
        given = [setting for setting in given if not setting.startswith(f"{SETTING_PREFIX}capacity=")]
    return shlex.join([*start, *(word for setting in given for word in ("-c", setting))])


def _best_of_each_way(options: Sequence[CapacityOption]) -> Iterator[tuple[int, CapacityOption]]:
    """The first of each way that could run, with its number in the table. What is paid for is a way of its own."""
    seen: set[tuple[str, bool]] = set()
    for number, option in enumerate(options, start=1):
        way = (option.capacity, option.paid_for)
        if option.prospect in ("now", "later") and way not in seen:
            seen.add(way)
            yield number, option


def _row(option: CapacityOption) -> tuple[str | Text, ...]:
    return (
        Text(option.prospect, _STYLES[option.prospect]),
        "\n".join(filter(None, (_description(option), option.reservation_id))),
        option.region,
        option.zone_id or "",
        f"{option.start:%Y-%m-%d %H:%M}" if option.start else "now",
        "" if option.hours is None else f"{option.hours:.4g}",
        _amount(option, option.total),
        _amount(option, option.hourly),
        "" if option.score is None else str(option.score),
        option.note,
    )


def _description(option: CapacityOption) -> str:
    return _WORDS.get(option.capacity, option.capacity)


def _note(option: CapacityOption) -> str:
    return option.note if option.reservation_id is None else f"{option.reservation_id}: {option.note}"


def _amount(option: CapacityOption, usd: Decimal | None) -> str:
    if option.paid_for:
        return "paid for"
    return "unknown" if usd is None else dollars(usd)


def _notes(found: Found) -> Iterator[str]:
    ways = {option.capacity for option in found.options}
    if ON_DEMAND in ways:
        yield "That a zone offers a type does not mean that it has one free. Quotas are another matter."
    if SPOT in ways:
        yield "Score: AWS's spot placement score, 1 to 10: no promise. AWS says that it is low for one type alone."
    if CAPACITY_BLOCK in ways:
        yield "A Capacity Block is for sale until somebody buys it. It is paid at once, and cannot be cancelled."
    for origin, words in _ORIGINS.items():
        days = sorted(price.date for price in found.prices if price.origin == origin)
        if days:
            since = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
            yield f"Prices by the hour: {words}, {since}, before tax and discounts. --json has each source."
    for reason in found.unavailable:
        yield f"AWS's prices are unavailable: {reason}"


def _sources(found: Found) -> list[str]:
    return sorted({f"{price.origin}, {price.date}: {price.source}" for price in found.prices})
