"""CloudWatch Logs: extracts metrics from log lines in the embedded metric format, which moto only stores.

The schema is that of Amazon CloudWatch User Guide, "Specification: Embedded metric format"
(github.com/awsdocs/amazon-cloudwatch-user-guide, commit 20a560c).
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from cfnlint.jsonschema import StandardValidator
from moto.cloudwatch.models import cloudwatch_backends


def extract(line: str, *, account_id: str, region: str) -> None:
    """Add the metrics of a line to CloudWatch. Like CloudWatch Logs, ignore a line that is not valid."""
    if not line.startswith("{"):
        return
    try:
        document = json.loads(line)
        if "_aws" not in document:
            return
        _schema().validate(document)
        data = list(_data(document))
    except Exception as error:
        print(f"not a document in the embedded metric format: {line[:200]}: {error!r}", flush=True)
        return
    backends: Any = cloudwatch_backends
    for namespace, datum in data:
        backends[account_id][region].put_metric_data(namespace, [datum])


@cache
def _schema() -> Any:
    schema = json.loads((files("trainium_local.services") / "embedded_metric_format.json").read_text())
    return StandardValidator(schema=schema)


def _data(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The namespace and the datum of each metric.

    Raises:
        KeyError: A member that the metadata names is missing.
        ValueError: The value of a metric is not a number.
    """
    at = datetime.fromtimestamp(document["_aws"]["Timestamp"] / 1000, UTC).replace(tzinfo=None)
    for directive in document["_aws"]["CloudWatchMetrics"]:
        for keys in directive["Dimensions"]:
            dimensions = [{"Name": key, "Value": document[key]} for key in keys]
            for metric in directive["Metrics"]:
                values = _numbers(document[metric["Name"]])
                datum = {"MetricName": metric["Name"], "Unit": metric.get("Unit", "None"), "Timestamp": at}
                yield directive["Namespace"], {**datum, "Dimensions": dimensions, "Values": values}


def _numbers(value: Any) -> list[float]:
    values: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(number, int | float) for number in values):
        raise ValueError(f"not a number: {values}")
    return values
