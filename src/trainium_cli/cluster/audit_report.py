"""An audit as tables, as JSON, and as a Markdown page."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from trainium_cli.layout import Table
from trainium_cli.terminal import table
from trainium_core.audit.outcome import Audit, Audited, Group
from trainium_core.costs.estimate import Total, dollars

HEADINGS: Mapping[Group, str] = {
    "left": "Left",
    "kept": "Retained",
    "shared": "Part of the CDK bootstrap, which other CDK apps share",
}
COLUMNS = ("Kind", "What", "State", "Found by", "Per month")

_NOT_SEEN = (
    "Included: one region and global resources. Not included: other regions, other accounts, training jobs that have "
    "ended and what they wrote to log groups that SageMaker shares among all jobs, CloudTrail, and resources that cost "
    "nothing and have neither the tag nor the name of the cluster."
)


def verdict_line(audit: Audit) -> str:
    """The verdict in one line, with the monthly cost of what is left."""
    left = audit.of("left")
    if audit.verdict == "nothing left":
        return f"nothing left of {audit.cluster} in {audit.region}; kinds of resources listed: {len(audit.kinds)}"
    unread = f"; {len(audit.not_read)} could not be read" if audit.not_read else ""
    if not left:
        return f"unknown whether anything is left of {audit.cluster} in {audit.region}{unread}"
    resources = f"{len(left)} resource{'s' if len(left) > 1 else ''}"
    return f"{resources} left of {audit.cluster} in {audit.region}, per month: {per_month(left)}{unread}"


def per_month(resources: Iterable[Audited]) -> Total:
    amounts = [audited.usd_per_month for audited in resources]
    known = [usd for usd in amounts if usd is not None]
    return Total(usd=sum(known, Decimal(0)), unknown=len(amounts) - len(known))


def resources_table(resources: Sequence[Audited]) -> Table:
    """A short table for the terminal. The report also has all of `found_by`, and why prices are unknown."""
    columns = ("Kind", "What", "Found by", "Per month")
    rows = [
        (audited.kind, _in_words(audited), audited.found_by[0], _price(audited).partition(":")[0])
        for audited in resources
    ]
    return table(columns, rows, right=["Per month"], wrapping=["What", "Found by"])


def _in_words(audited: Audited) -> str:
    parts = (audited.resource.name, audited.resource.detail, audited.resource.state.lower())
    return ", ".join(part for part in parts if part)


def _row(audited: Audited) -> tuple[str, ...]:
    parts = [audited.resource.name, *([audited.resource.detail] if audited.resource.detail else [])]
    return (audited.kind, ": ".join(parts), audited.resource.state, ", ".join(audited.found_by), _price(audited))


def _price(audited: Audited) -> str:
    charge = audited.resource.charge
    if audited.usd_per_month is None:
        return f"unknown: {charge.unpriced}" if charge.unpriced else "unknown"
    if not audited.usd_per_month:
        return charge.note or "-"
    return dollars(audited.usd_per_month) + (f", {charge.note}" if charge.note else "")


def audit_as_json(audit: Audit) -> dict[str, Any]:
    """The complete audit. Unknown prices are null."""
    return {
        "verdict": audit.verdict,
        "cluster": audit.cluster,
        "time": audit.time.isoformat(),
        "account": audit.identity.account,
        "caller": audit.identity.arn,
        "endpoint": audit.identity.endpoint,
        "region": audit.region,
        "usd_per_month": {group: _total(audit.of(group)) for group in HEADINGS},
        "resources": [_resource(audited) for audited in audit.resources],
        "not_read": [{"what": unread.what, "reason": unread.reason} for unread in audit.not_read],
        "stacks": [
            {
                "name": stack.name,
                "id": stack.stack_id,
                "status": stack.status,
                "created": stack.created,
                "deleted": stack.deleted,
            }
            for stack in audit.stacks
        ],
        "kinds_looked_for": list(audit.kinds),
        "calls": dict(audit.calls),
        "prices_unavailable": list(audit.prices_unavailable),
    }


def _total(resources: Sequence[Audited]) -> dict[str, Any]:
    total = per_month(resources)
    return {"at_least": float(total.usd), "unknown_prices": total.unknown}


def _resource(audited: Audited) -> dict[str, Any]:
    resource = audited.resource
    return {
        "group": audited.group,
        "kind": audited.kind,
        "name": resource.name,
        "arn": resource.arn or None,
        "state": resource.state,
        "detail": resource.detail,
        "created": resource.created,
        "found_by": list(audited.found_by),
        "usd_per_month": None if audited.usd_per_month is None else float(audited.usd_per_month),
        "price_lacks": resource.charge.unpriced or None,
        "price_note": resource.charge.note or None,
    }


def audit_as_page(audit: Audit) -> str:
    """The audit in Markdown.

    Only the JSON has the ARNs of resources, the times of resources and stacks, and why AWS's prices are unavailable.
    """
    elsewhere = f" (answered by {audit.identity.endpoint}, not by AWS)" if audit.identity.endpoint else ""
    lines = [
        f"# Audit of {audit.cluster}",
        "",
        f"**{verdict_line(audit)}**",
        "",
        f"- Time: {audit.time.isoformat(timespec='seconds')}",
        f"- Account: {audit.identity.account}{elsewhere}, requested as {audit.identity.arn}",
        f"- Region: {audit.region}, and global resources",
        f"- Calls: {sum(audit.calls.values())}, all read-only",
        "",
    ]
    for group, heading in HEADINGS.items():
        found = audit.of(group)
        lines += [f"## {heading}", "", *(_markdown(COLUMNS, map(_row, found)) if found else ["Nothing found."]), ""]
    lines += ["## Could not be read", ""]
    lines += [f"- {unread.what}: {unread.reason}" for unread in audit.not_read] or ["Nothing."]
    lines += ["", "## Stacks of the cluster in CloudFormation's history", ""]
    lines += [f"- {stack.name}: {stack.status}, {stack.stack_id}" for stack in audit.stacks] or ["None."]
    lines += ["", "## Listed kinds", "", ", ".join(audit.kinds) + ".", "", _NOT_SEEN, ""]
    lines += ["US dollars at list price, before tax and discounts.", "", "## Calls", ""]
    lines += _markdown(("Call", "Times"), ((call, str(times)) for call, times in audit.calls.items()))
    return "\n".join(lines) + "\n"


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    drawn = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in drawn]
