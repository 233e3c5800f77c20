"""The record of a node: written by the node once it has verified itself, read by functions and the command line.

A record is one JSON object at `<report URL>/<instance id>.json` in S3: reachable through the free gateway endpoint even
from a network without any other way out.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

REPORT_URL_VARIABLE = "TRN_REPORT_URL"
"""Name of the shell variable in the user data that holds the S3 URL of the folder the records go to."""

State = Literal["proven", "failed", "draining"]
"""`draining`: proven, and ends soon; `reason` says why and when."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of a node: what the catalogue expects and what was found.

    warning: what is wrong with it although it does not fail the node; empty when nothing is.
    """

    name: str
    expected: str
    found: str
    ok: bool
    warning: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """The outcome of one node's verification. `reason` is empty for a proven node; `time` is ISO 8601 in UTC.

    address: private IPv4 address of the node's first interface; empty when unknown. roster: version of the roster whose
    nodes it has reached; empty before it was given one.
    """

    instance_id: str
    state: State
    reason: str = ""
    checks: tuple[Check, ...] = ()
    address: str = ""
    roster: str = ""
    time: str

    @property
    def warnings(self) -> str:
        """Everything that is wrong and does not fail the node, in one text; empty when nothing is."""
        return "; ".join(check.warning for check in self.checks if check.warning)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "NodeRecord":
        """Read a record. Raises ValueError with the reason when the text is not one."""
        try:
            raw: Any = json.loads(text)
            state = raw["state"]
            if state not in get_args(State):
                raise ValueError(f"state is {state!r}, not one of {', '.join(get_args(State))}")
            record = cls(
                instance_id=str(raw["instance_id"]),
                state=state,
                reason=str(raw.get("reason", "")),
                checks=tuple(
                    Check(
                        name=str(c["name"]),
                        expected=str(c["expected"]),
                        found=str(c["found"]),
                        ok=c["ok"] is True,
                        warning=str(c.get("warning", "")),
                    )
                    for c in raw.get("checks", [])
                ),
                address=str(raw.get("address", "")),
                roster=str(raw.get("roster", "")),
                time=str(raw["time"]),
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"not a node record: {error!r}") from error
        failed = [check.name for check in record.checks if not check.ok]
        if record.state == "proven" and failed:
            raise ValueError(f"contradicts itself: proven, although {', '.join(failed)} failed")
        return record
