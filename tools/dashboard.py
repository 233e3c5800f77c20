"""Draws the dashboard of a cluster from its definition: docs/assets/dashboard.svg.

    python -m tools.dashboard

The definition is that of the template. The samples are made up, and become metrics as those of nodes do: two nodes
without a job, a job that waits, the same job when it computes, and a device that fails.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from aws_cdk import App

from stacks.trn_cluster_stack import TrnClusterStack
from trainium_core import Plan
from trainium_core.evidence.charts import WIDTH, ChartLine, curve
from trainium_runtime.node_metrics import MetricLines, Window
from trainium_wire.metric_sample import MetricSample
from trainium_wire.node_record import NodeRecord, StoredRecord
from trainium_wire.usage import NodeUsage

PICTURE = Path(__file__).parents[1] / "docs/assets/dashboard.svg"
START = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTES = 150
NODES = ("i-0aa", "i-0bb")
STYLE = """
svg { font-family: system-ui, sans-serif; background: #fff; }
.title { font-size: 14px; font-weight: 600; } .label { font-size: 12.5px; } .tick { fill: #667; font-size: 12px; }
.grid { stroke: #dde; } .line { fill: none; stroke-width: 1.75; }
.s0 { stroke: #2458c6; } .s1 { stroke: #b26a00; stroke-dasharray: 6 5; }
.s2 { stroke: #7a3fc2; stroke-dasharray: 1 4; stroke-linecap: round; } .s3 { stroke: #667; stroke-dasharray: 10 3 2 3; }
.ok { fill: #1b7f4b; } .alarm { fill: #c0262d; } .state { fill: #fff; font-size: 11px; }
"""

Series = Mapping[int, Sequence[float]]
"""The values of a metric by minute."""


def samples(node: str) -> Iterator[MetricSample]:
    for minute in range(MINUTES):
        job = "train-1" if minute >= 20 else ""
        computes = minute >= 70
        busy = (85.0 + minute % 7 if node == NODES[0] else 78.0 + minute % 11) if computes else 0.0
        yield MetricSample(
            START + timedelta(minutes=minute),
            job,
            busy,
            (62.0 if computes else 8.0) if job else 0.0,
            execution_errors=0,
            ecc_uncorrected=2 if (node, minute) == (NODES[1], MINUTES - 12) else 0,
        )


def metrics() -> Mapping[tuple[str, str], Series]:
    """What CloudWatch extracts, by the name of the metric and the node; without a node, of the cluster."""
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    verified = {
        node: StoredRecord(record=NodeRecord(node, "verified", ""), written=START - timedelta(hours=1))
        for node in NODES
    }
    for run in (START + timedelta(minutes=minute) for minute in range(10, MINUTES + 10, 5)):
        usages = {node: NodeUsage("in-use", run, samples=tuple(samples(node))) for node in NODES}
        for line in MetricLines(cluster="trn-pilot", by_node=True).lines(Window.before(run), usages, verified):
            minute = round((line["_aws"]["Timestamp"] / 1000 - START.timestamp()) / 60)
            for directive in line["_aws"]["CloudWatchMetrics"]:
                for dimensions in directive["Dimensions"]:
                    node = line["InstanceId"] if dimensions else ""
                    for metric in directive["Metrics"]:
                        found[metric["Name"], node][minute].append(line[metric["Name"]])
    found["GroupInServiceInstances", ""] = {minute: [len(NODES)] for minute in range(MINUTES - 5)}
    return found


def periods(series: Series, statistic: str, minutes: int) -> list[tuple[float, float]]:
    values: dict[int, list[float]] = defaultdict(list)
    for minute, of_minute in series.items():
        values[minute // minutes * minutes].extend(of_minute)
    reduce: Any = {"Average": mean, "Sum": sum, "Maximum": max}[statistic]
    return [(minute, reduce(values[minute])) for minute in sorted(values)]


def lines(graph: Any, found: Mapping[tuple[str, str], Series]) -> Iterator[ChartLine]:
    for number, (first, *more) in enumerate(graph["metrics"]):
        options = more[-1] if more else first
        label, minutes = options.get("label", ""), options.get("period", 300) // 60
        if not more and (search := re.search(r'MetricName="(\w+)"', first["expression"])):
            for at, node in enumerate(NODES):
                yield ChartLine(label=node, points=periods(found[search[1], node], "Average", 1), series=at + 1)
        elif not more:
            usd = float(first["expression"].removeprefix("nodes * "))
            running = periods(found["GroupInServiceInstances", ""], "Maximum", minutes)
            yield ChartLine(label=label, points=[(minute, nodes * usd) for minute, nodes in running])
        elif options.get("visible", True):
            points = periods(found[more[0], ""], options.get("stat", "Average"), minutes)
            yield ChartLine(label=label, points=points, series=number)


def is_raised(alarm: Any, found: Mapping[tuple[str, str], Series]) -> bool:
    values = dict(periods(found[alarm["MetricName"], ""], alarm["Statistic"], alarm["Period"] // 60))
    last = [values[minute] for minute in sorted(values)[-alarm["EvaluationPeriods"] :]]
    is_low = alarm["ComparisonOperator"] == "LessThanThreshold"
    breaching = [value for value in last if (value < alarm["Threshold"]) == is_low or value == alarm["Threshold"]]
    return len(breaching) >= alarm["DatapointsToAlarm"]


def resources() -> Mapping[str, Any]:
    with TemporaryDirectory() as folder:
        app = App(outdir=folder)
        plan = Plan.of(instance_type="trn1.32xlarge", region="us-west-2", nodes=len(NODES))
        stack = TrnClusterStack(app, "TrnClusterStack", plan=plan)
        return app.synth().get_stack_artifact(stack.artifact_id).template["Resources"]


def drawn(template: Mapping[str, Any]) -> Element:
    (body,) = [each["Properties"]["DashboardBody"] for each in template.values() if "Dashboard" in each["Type"]]
    parts = body["Fn::Join"][1]
    names = [
        part["Fn::GetAtt"][0] if "Fn::GetAtt" in part else "?" if isinstance(part, dict) else part for part in parts
    ]
    widgets, found = json.loads("".join(names))["widgets"], metrics()
    picture = Element("svg", {"xmlns": "http://www.w3.org/2000/svg"})
    SubElement(picture, "style").text = STYLE
    columns, height = [60.0, 60.0], 0.0
    for widget in widgets:
        if widget["type"] == "alarm":
            for at, name in enumerate(widget["properties"]["alarms"]):
                alarm = template[name]["Properties"]
                box(picture, 10 + at * 168, alarm["MetricName"], raised=is_raised(alarm, found))
            continue
        graph, column = widget["properties"], int(widget["x"] > 0)
        x, y = column * (WIDTH + 24) + 10, columns[column]
        SubElement(picture, "text", {"x": str(x), "y": str(y + 10), "class": "title"}).text = graph["title"]
        shown = [line for line in lines(graph, found) if line.points]
        for limit in graph.get("annotations", {}).get("horizontal", ()):
            points = [(shown[0].points[end][0], limit["value"]) for end in (0, -1)]
            shown.append(ChartLine(label=f"{limit['label']} {limit['value']}", points=points, series=3))
        chart = fromstring(curve(graph["title"], "minutes", "", shown).svg)
        of_chart = float(chart.attrib["viewBox"].split()[3])
        chart.attrib |= {"x": str(x), "y": str(y + 18), "width": str(WIDTH), "height": str(of_chart)}
        picture.append(chart)
        columns[column] += of_chart + 40
        height = max(height, columns[column])
    picture.attrib |= {"viewBox": f"0 0 {2 * WIDTH + 44:.0f} {height:.0f}"}
    return picture


def box(picture: Element, x: float, name: str, *, raised: bool) -> None:
    look = {"width": "162", "height": "28", "rx": "4", "class": "alarm" if raised else "ok"}
    SubElement(picture, "rect", {"x": str(x), "y": "10", **look})
    SubElement(picture, "text", {"x": str(x + 6), "y": "29", "class": "state"}).text = name


def main() -> None:
    PICTURE.write_text(tostring(drawn(resources()), encoding="unicode") + "\n")
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
