"""cfn-lint on templates with their regions, so that it checks what each region offers."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cfnlint.config import ConfigMixIn
from cfnlint.rules import Rules
from cfnlint.runner import Runner, run_template_by_file_path

CDK_WRITES_NEEDLESS_DEPENDENCIES = "W3005"
"""`add_dependency` in the CDK names every resource of a construct, including those that a reference already orders."""


@dataclass(frozen=True)
class Finding:
    rule: str
    message: str


def lint(template: Path, region: str) -> list[Finding]:
    """The findings of `cfn-lint --regions REGION TEMPLATE`."""
    config = ConfigMixIn(["--template", str(template)], regions=[region])
    matches = run_template_by_file_path(str(template), config, _rules(), False)
    return [Finding(match.rule.id, match.message) for match in matches]


@cache
def _rules() -> Rules:
    """The rules, shared by all templates, because creating them takes half a second."""
    return Runner(ConfigMixIn([])).rules
