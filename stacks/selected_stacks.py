"""Which stacks of the app are wanted: those that the CDK CLI was given by name, else those of the setting.

The CDK makes every stack of an app at each command, and a bare `cdk deploy` works with one stack only. So a stack that
is not asked for is not made. The CLI does not pass its arguments to an app; its command line holds them. Its context
`aws:cdk:bundling-stacks` would, but holds the stacks with `--exclusively` alone (aws-cdk 2.1148).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from trainium_core import Plan, PlanError
from trainium_core.engines.registry import CONSTRUCT_IDS

_LISTING = (["ls"], ["list"])
_GENERATIONS = 5
"""How far up the CLI may be: it starts the app by way of a shell, and may itself have been started by npx."""


def with_selected_stacks(plan: Plan, command_line: Sequence[str]) -> Plan:
    """The plan with the stacks to make. `command_line`: arguments of the CDK CLI, empty when they are not known.

    A name may be a pattern, such as 'SageMaker*'. `cdk list` lists every stack that the plan allows.
    Raises PlanError when the plan does not allow a stack that is asked for.
    """
    words = [word for word in command_line if re.search("[A-Za-z]", word) and not word.startswith("-")]
    if words[:1] in _LISTING:
        return _with_stacks(plan, [key for key in CONSTRUCT_IDS if _allows(plan, key)])
    named = [key for key, name in CONSTRUCT_IDS.items() if any(fnmatchcase(name, word) for word in words)]
    return _with_stacks(plan, named) if named else plan


def _with_stacks(plan: Plan, keys: Sequence[str]) -> Plan:
    return replace(plan, stacks=tuple(keys))


def _allows(plan: Plan, key: str) -> bool:
    try:
        _with_stacks(plan, [key])
    except PlanError:
        return False
    return True


def cdk_command_line(process: Path = Path("/proc/self")) -> list[str]:
    """The arguments of the CDK CLI that started this process; none where there is no such thing or no /proc."""
    for arguments in _ancestors(process):
        for index, argument in enumerate(arguments[:3]):
            if Path(argument).name in ("cdk", "cdk.js"):
                return arguments[index + 1 :]
    return []


def _ancestors(process: Path) -> Iterator[list[str]]:
    try:
        for _ in range(_GENERATIONS):
            status = (process / "status").read_text()
            match = re.search(r"^PPid:\s+([0-9]+)$", status, re.MULTILINE)
            if match is None or match[1] == "0":
                return
            process = process.parent / match[1]
            yield (process / "cmdline").read_text().split("\0")[:-1]
    except OSError:
        return
