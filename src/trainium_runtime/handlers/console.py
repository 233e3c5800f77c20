"""Errors in the EC2 console output of nodes without a record."""

import re
from collections.abc import Sequence
from typing import Any

from trainium_wire.formats import one_line

from .log import log

_FAILED = re.compile(r"trn-node FAILED: *([^\r\n]+)")
_LONGEST = 300  # characters of an error
_PER_POLL = 5  # nodes per poll: EC2 throttles the call strictly, and the errors of a few nodes are enough
_INTERVAL_S = 60.0


class Consoles:
    """Reads the consoles of nodes without a record: a few in each poll, each at most once a minute."""

    def __init__(self, ec2: Any) -> None:
        self._ec2 = ec2
        self._failures: dict[str, str] = {}
        self._last_request: dict[str, float] = {}

    def failures(self, silent: Sequence[str], *, now: float) -> dict[str, str]:
        """The last error of each node whose console has one, by instance ID.

        Errors of AWS are logged and not raised, because the records are the main source.

        Args:
            silent: Instances without a record.
            now: Seconds since any fixed time.
        """
        due = [
            i
            for i in silent
            if i not in self._failures and now - self._last_request.get(i, -_INTERVAL_S) >= _INTERVAL_S
        ]
        for instance in sorted(due, key=lambda i: self._last_request.get(i, 0.0))[:_PER_POLL]:
            self._last_request[instance] = now
            if failure := self._fetch(instance):
                self._failures[instance] = failure
        return {instance: self._failures[instance] for instance in silent if instance in self._failures}

    def _fetch(self, instance: str) -> str | None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            # Without Latest, EC2 returns output that may be minutes old. Nitro instances support Latest.
            response = self._ec2.get_console_output(InstanceId=instance, Latest=True)
            text = str(response.get("Output") or "")  # botocore has decoded it
        except (BotoCoreError, ClientError) as error:
            log(f"console of {instance}: {error}")
            return None
        failures = _FAILED.findall(text)
        return one_line(failures[-1], _LONGEST) if failures else None
