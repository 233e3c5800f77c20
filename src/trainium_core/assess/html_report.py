"""An assessment as one self-contained page: no script, font or other file."""

from collections.abc import Sequence
from datetime import date

from trainium_core.assess.findings import CANNOT_SEE, EFFORT, Assessment
from trainium_core.assess.rules import Severity, rules, stacks
from trainium_core.html_page import html_page


def as_html(found: Assessment, shown: Sequence[str], version: str, made: date) -> str:
    """The document of --format html, for the shown stacks."""
    groups = {
        severity: {rule: here for rule, here in found.by_rule(shown).items() if rule.worst_of(shown) == severity}
        for severity in sorted(Severity, reverse=True)
    }
    return html_page(
        "assess/report.html.j2",
        found=found,
        shown=shown,
        stacks=stacks(),
        worst={stack: max(found.kinds(stack), default=Severity.none).name for stack in shown},
        groups={severity: rows for severity, rows in groups.items() if rows},
        rules=rules(),
        cannot_see=CANNOT_SEE,
        effort=EFFORT,
        version=version,
        made=made,
    )
