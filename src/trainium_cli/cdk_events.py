"""Runs the CDK CLI, and parses the stack events in its output."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_EVENT = re.compile(
    r"^\S+ \|\s*(?P<done>\d+)(/(?P<all>\d+))? \| [^|]+ \| (?P<status>\w+)\s*\| (?P<type>\S+)\s*\| (?P<what>.*)$"
)


@dataclass(frozen=True, kw_only=True)
class CdkEvent:
    """A stack event.

    Attributes:
        done: Number of complete resources.
        total: Number of all resources, if known.
        status: Status of the resource, such as CREATE_COMPLETE.
        kind: Type of the resource.
        what: The rest of the line, which begins with the resource.
    """

    done: int
    total: int | None
    status: str
    kind: str
    what: str

    @property
    def failed(self) -> bool:
        return self.status.endswith("FAILED")

    @property
    def verb(self) -> str:
        """The verb of the status, such as create."""
        return self.status.rpartition("_")[0].removesuffix("_IN").lower()

    @property
    def counted(self) -> str:
        return f"{self.done} done" if self.total is None else f"{self.done} of {self.total} done"


def cdk_event(line: str) -> CdkEvent | None:
    """The event in a line; None for other lines."""
    found = _EVENT.match(line)
    if found is None:
        return None
    total = int(found["all"]) if found["all"] else None
    what = found["what"].strip()
    return CdkEvent(done=int(found["done"]), total=total, status=found["status"], kind=found["type"], what=what)


def run_cdk(
    command: Sequence[str],
    folder: Path,
    on_line: Callable[[str], None],
    *,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run the CDK CLI without a terminal, and return its exit code.

    Args:
        command: The program and its arguments.
        folder: Its working directory.
        on_line: Called with each line of standard output and standard error.
        environment: Environment variables of the program. Default: those of this process.
    """
    with subprocess.Popen(
        [*command, "--no-color", "--no-notices", "--progress", "events"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip())
    return process.returncode
