"""What a cluster costs, as tables for people and as JSON for programs."""

from collections.abc import Iterable
from typing import Any

from trainium_cli.layout import Table
from trainium_cli.terminal import table
from trainium_core.costs.estimate import Total, dollars
from trainium_core.spending.spending import Line, Spending

LAG = "Cost Explorer lags by up to a day: the last hours are not in it."


def lines_table(lines: Iterable[Line], amount: str) -> Table:
    rows = [(line.what, "unknown" if line.usd is None else dollars(line.usd), line.how) for line in lines]
    return table(["What", amount, "How this was got"], rows, right=[amount], wrapping=["What", "How this was got"])


def billed_table(spending: Spending) -> Table:
    services = sorted((spending.billed or {}).items(), key=lambda item: -item[1])
    return table(["Service", "Billed"], [(service, dollars(usd)) for service, usd in services], right=["Billed"])


def summary(spending: Spending) -> list[tuple[str, str]]:
    """The numbers one asks for, each with what it is."""
    if spending.billed_total is None:
        billed = f"unknown: {spending.not_billed}"
    else:
        billed = f"{dollars(spending.billed_total)}, by Cost Explorer. {LAG}"
    rows = [
        ("Billed until now", billed),
        ("Estimated until now", f"{spending.estimated_total} (estimated)"),
        ("Per hour now", f"{spending.hourly}"),
    ]
    forecast = spending.forecast
    if forecast is None:
        return [*rows, ("At the end", "no forecast: the plan has no end (trn:ends), or no stack stands")]
    message = f"{forecast.total} (estimated), if the next {forecast.hours:.1f} h are as now"
    return [*rows, (f"At the end, {forecast.ends:%Y-%m-%d %H:%M} UTC", message)]


def spending_as_json(spending: Spending) -> dict[str, Any]:
    """Null where an amount is not known."""
    forecast = spending.forecast
    return {
        "cluster": spending.audit.cluster,
        "region": spending.audit.region,
        "account": spending.audit.identity.account,
        "time": spending.audit.time,
        "since": spending.since,
        "currency": "USD",
        "billed": None
        if spending.billed is None
        else {service: float(usd) for service, usd in spending.billed.items()},
        "billed_total": None if spending.billed_total is None else float(spending.billed_total),
        "billed_lag": LAG,
        "why_not_billed": spending.not_billed or None,
        "estimated": [_line(line) for line in spending.estimated],
        "estimated_total": _total(spending.estimated_total),
        "per_hour": [_line(line) for line in spending.now],
        "per_hour_total": _total(spending.hourly),
        "forecast": None
        if forecast is None
        else {"ends": forecast.ends, "hours_left": float(forecast.hours), "total": _total(forecast.total)},
        "not_read": [{"what": one.what, "reason": one.reason} for one in spending.audit.not_read],
        "prices_not_heard": list(spending.audit.prices_unavailable),
    }


def _line(line: Line) -> dict[str, Any]:
    return {"what": line.what, "usd": None if line.usd is None else float(line.usd), "how": line.how}


def _total(total: Total) -> dict[str, Any]:
    return {"at_least": float(total.usd), "unknown_amounts": total.unknown}
