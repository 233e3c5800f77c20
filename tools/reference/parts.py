"""Maps markers to parts of the reference, and updates all parts of a page.

A part begins at the line `<!-- generated: NAME -->` and ends at `<!-- end of NAME -->`; the text outside is written by
hand.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.reference.constructs import construct_parameters
from tools.reference.record import record_keys
from tools.reference.tables import (
    assess_libraries,
    assess_rules,
    command_groups,
    commands,
    exit_codes,
    instance_types,
    node_checks,
    preflight_checks,
    prices,
    settings,
    zones,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

PARTS: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "command-groups": command_groups,
    "commands": commands,
    "exit-codes": exit_codes,
    "preflight-checks": preflight_checks,
    "node-checks": node_checks,
    "construct-parameters": construct_parameters,
    "instance-types": instance_types,
    "zones": zones,
    "prices": prices,
    "assess-rules": assess_rules,
    "assess-libraries": assess_libraries,
    "record-keys": record_keys,
}
"""The function that generates each part, by the name of the part."""

_PART = re.compile(r"<!-- generated: ([\w-]+) -->\n.*?<!-- end of \1 -->", re.DOTALL)


def parts_of(page: str) -> list[str]:
    """Names of the generated parts of a page."""
    return _PART.findall(page)


def updated(page: str) -> str:
    """The page with all parts regenerated. Raises KeyError for a part without a function in PARTS."""
    return _PART.sub(lambda match: _part(match[1]), page)


def _part(name: str) -> str:
    return f"<!-- generated: {name} -->\n\n{PARTS[name]()}\n\n<!-- end of {name} -->"
