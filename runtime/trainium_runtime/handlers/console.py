"""What a node that cannot report said on its console, where EC2 keeps it."""

import re
from collections.abc import Sequence
from typing import Any

from trainium_runtime.stored_record import one_line

_FAILED = re.compile(r"trn-node FAILED: *([^\r\n]+)")
_LONGEST = 300
_AT_ONCE = 5  # nodes asked per look: the call is throttled strictly, and a few sentences say it all
_EVERY_S = 60.0


class Consoles:
    """Asks for the consoles of silent nodes, a few at a time and not all the time; what was said stays said."""

    def __init__(self, ec2: Any) -> None:
        self._ec2 = ec2
        self._said: dict[str, str] = {}
        self._asked: dict[str, float] = {}

    def failures(self, silent: Sequence[str], *, now: float) -> dict[str, str]:
        """Why silent nodes gave up, as far as they said so. Never raises: it is a second source."""
        due = [i for i in silent if i not in self._said and now - self._asked.get(i, -_EVERY_S) >= _EVERY_S]
        for instance in sorted(due, key=lambda i: self._asked.get(i, 0.0))[:_AT_ONCE]:
            self._asked[instance] = now
            if said := self._ask(instance):
                self._said[instance] = said
        return {instance: self._said[instance] for instance in silent if instance in self._said}

    def _ask(self, instance: str) -> str | None:
        from botocore.exceptions import ClientError

        try:
            # Latest: else EC2 shows what it kept after the boot, which may be minutes old. Nitro instances have it.
            answer = self._ec2.get_console_output(InstanceId=instance, Latest=True)
            text = str(answer.get("Output") or "")  # botocore has decoded it
        except ClientError as error:
            print(f"console of {instance}: {error}")
            return None
        found = _FAILED.findall(text)
        return one_line(found[-1], _LONGEST) if found else None
