"""cfn-lint on templates, with the region of each, so that it knows what the region offers."""

from functools import cache
from pathlib import Path

from cfnlint.config import ConfigMixIn
from cfnlint.rules import Match, Rules
from cfnlint.runner import Runner, run_template_by_file_path

CDK_WRITES_NEEDLESS_DEPENDENCIES = "W3005"
"""`add_dependency` in the CDK names every resource of a construct, also those that a reference orders already."""


def lint(template: Path, region: str) -> list[Match]:
    """What `cfn-lint --regions REGION TEMPLATE` finds."""
    config = ConfigMixIn(["--template", str(template)], regions=[region])
    return list(run_template_by_file_path(str(template), config, _rules(), False))


@cache
def _rules() -> Rules:
    """As the command does for several templates, one set for all: to make it takes half a second."""
    return Runner(ConfigMixIn([])).rules
