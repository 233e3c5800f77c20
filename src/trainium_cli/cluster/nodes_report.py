"""The nodes of a cluster as tables for people."""

from collections.abc import Sequence
from datetime import UTC, datetime

from trainium_cli.layout import Group, Table, Text
from trainium_cli.terminal import table
from trainium_core.nodes.report import NodesReport, NodeStatus
from trainium_runtime.node_record import Check

_STYLE = {"proven": "green", "failed": "red", "draining": "yellow", "leaving": "yellow"}


_SHOWN_GONE = 10


def nodes_table(report: NodesReport) -> Group:
    """One row for each node, and what it comes to."""
    rows = [
        (
            node.instance_id,
            node.zone,
            node.address,
            Text(node.state, style=_STYLE.get(node.state, "")),
            _moment(node.since),
            _moment(node.launched),
            node.problem,
        )
        for node in report.nodes
    ]
    columns = ("Instance", "Zone", "Address", "State", "Since", "Launched", "What is wrong")
    drawn: Sequence[Table | Text] = [table(columns, rows, wrapping=("What is wrong",)), Text("")] if rows else []
    return Group([*drawn, *_gone(report), Text(f"{report.verdict.state}: {report.verdict.reason}")])


def _gone(report: NodesReport) -> Sequence[Table | Text]:
    """Failed nodes that are gone, with the reasons that they left."""
    if not report.gone:
        return []
    rows = [(node.instance_id, _moment(node.since), node.reason) for node in report.gone[:_SHOWN_GONE]]
    more = len(report.gone) - len(rows)
    title = Text(f"Failed nodes that are gone, {report.replaced} in 24 hours{f'; {more} more' if more else ''}")
    return [title, table(("Instance", "Failed", "What was wrong"), rows, wrapping=("What was wrong",)), Text("")]


def checks_table(node: NodeStatus) -> Group:
    """Every check of one node."""
    rows = [
        (
            check.name,
            _outcome(check),
            check.expected,
            check.found,
        )
        for check in node.checks
    ]
    where = ", ".join(part for part in (node.zone, node.address) if part)
    title = f"{node.instance_id} ({where}) is {node.state}{f' since {_moment(node.since)}' if node.since else ''}"
    problem = [Text(node.problem)] if node.problem else []
    drawn = table(("Check", "Outcome", "Expected", "Found"), rows, wrapping=("Expected", "Found"))
    return Group([Text(title, style="bold"), *problem, *([Text(""), drawn] if rows else [])])


def _outcome(check: Check) -> Text:
    if not check.ok:
        return Text("fail", style="red")
    return Text("warn", style="yellow") if check.warning else Text("pass", style="green")


def _moment(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%m-%d %H:%M:%SZ}" if moment else "-"
