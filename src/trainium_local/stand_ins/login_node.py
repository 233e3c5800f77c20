"""Simulates Slurm on a login node of AWS PCS: a queue in which jobs wait until `trn` cancels them."""

import re
from base64 import b64decode
from typing import Any

from moto.ec2 import ec2_backends

from trainium_local.pcs.instances import GROUP_TAG

_SUBMITTED = re.compile(r"base64 -d <<<(\S+).*\bsbatch\b")
_NAME = re.compile(r"^#SBATCH --job-name=(\S+)", re.MULTILINE)
_CANCELLED = re.compile(r"^scancel (?:\S+ )*(\d+)$", re.MULTILINE)

_REASON = "no code runs: the embedded AWS starts no Slurm nodes for jobs"

_queues: dict[str, "_Queue"] = {}
"""Queues by the ID of the login node."""


def send_command(original: Any, backend: Any, *arguments: Any, **named: Any) -> Any:
    """Answer Run Command of Systems Manager. No program runs: patterns recognize the commands of `trn`."""
    command = original(backend, *arguments, **named)
    text = "\n".join(command.parameters.get("commands", []))
    for invocation in command.invocations:
        instance = ec2_backends[backend.account_id][backend.region_name].get_instance(invocation["InstanceId"])
        if any(tag["key"] == GROUP_TAG for tag in instance.get_tags()):
            queue = _queues.setdefault(instance.id, _Queue())
            invocation["StandardOutputContent"] = queue.answer(text)
    return command


class _Queue:
    """Jobs that wait: no node ever starts for them."""

    def __init__(self) -> None:
        self._jobs: list[tuple[str, str]] = []

    def answer(self, command: str) -> str:
        """Return the output of a command."""
        if submitted := _SUBMITTED.search(command):
            name = _NAME.search(b64decode(submitted[1]).decode())
            self._jobs.append((name[1] if name else "sbatch", "PENDING"))
            return f"{len(self._jobs)}\n"
        if cancelled := _CANCELLED.search(command):
            position = int(cancelled[1]) - 1
            self._jobs[position] = (self._jobs[position][0], "CANCELLED")
            return ""
        if "squeue " in command:
            every = "--states=all" in command
            rows = enumerate(self._jobs, start=1)
            return "".join(
                f"{name}|{number}|{state}|{_REASON}\n" for number, (name, state) in rows if every or state == "PENDING"
            )
        return ""
