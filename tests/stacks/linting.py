"""cfn-lint on templates, with the region of each, so that it knows what the region offers."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cfnlint.config import ConfigMixIn
from cfnlint.rules import Rules
from cfnlint.runner import Runner, run_template_by_file_path

CDK_WRITES_NEEDLESS_DEPENDENCIES = "W3005"
"""`add_dependency` in the CDK names every resource of a construct, also those that a reference orders already."""


@dataclass(frozen=True)
class Finding:
    rule: str
    message: str


def lint(template: Path, region: str) -> list[Finding]:
    """What `cfn-lint --regions REGION TEMPLATE` finds."""
    config = ConfigMixIn(["--template", str(template)], regions=[region])
    matches = run_template_by_file_path(str(template), config, _rules(), False)
    return [Finding(match.rule.id, match.message) for match in matches]


@cache
def _rules() -> Rules:
    """As the command does for several templates, one set for all: to make it takes half a second."""
    return Runner(ConfigMixIn([])).rules
