"""The usage report of a node: one JSON object for each node, below USAGE_PREFIX."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from trainium_wire.formats import json_value, one_line, time_text
from trainium_wire.metric_sample import MetricSample, samples_from_record, samples_record

State = Literal["in-use", "idle", "unknown"]

_LONGEST_DETAIL = 200
_LONGEST_IDLE = timedelta(days=3650)
_EARLIEST = 2020


@dataclass(frozen=True)
class NodeUsage:
    """The usage of one node.

    Attributes:
        at: Time of the report.
        idle: How long the node had been idle.
        detail: The job or the processes that use the node, or why the usage is unknown; empty if idle.
        samples: The metrics of the last minutes, oldest first.
    """

    state: State
    at: datetime
    idle: timedelta = timedelta()
    detail: str = ""
    samples: tuple[MetricSample, ...] = ()

    def to_json(self) -> str:
        record = {
            "state": self.state,
            "at": time_text(self.at),
            "idle_seconds": round(self.idle.total_seconds()),
            "detail": self.detail,
            "metrics": samples_record(self.samples),
        }
        return json.dumps(record, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> NodeUsage:
        """Parse a usage report.

        Raises:
            ValueError: The text is not a usage report.
        """
        try:
            raw: Any = json_value(text)
            if raw["state"] not in get_args(State):
                raise ValueError(f"state is {raw['state']!r}, not one of {', '.join(get_args(State))}")
            # Before Python 3.11, fromisoformat does not parse a Z.
            at = datetime.fromisoformat(raw["at"].replace("Z", "+00:00"))
            idle = timedelta(seconds=float(raw["idle_seconds"]))
            if at.tzinfo is None or not timedelta() <= idle <= _LONGEST_IDLE or at.year < _EARLIEST:
                raise ValueError(f"not a time and a duration: {at} and {idle}")
            return cls(
                state=raw["state"],
                at=at,
                idle=idle,
                detail=one_line(str(raw.get("detail", "")), _LONGEST_DETAIL),
                samples=samples_from_record(raw.get("metrics")),
            )
        except (KeyError, TypeError, AttributeError, OverflowError, json.JSONDecodeError) as error:
            raise ValueError(f"not a usage report: {error!r}") from error
