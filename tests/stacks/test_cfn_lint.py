"""cfn-lint with the region of each template, so that it checks what the region offers."""

import pytest

from tests.constructs.synth import cluster_template
from tests.stacks.linting import CDK_WRITES_NEEDLESS_DEPENDENCIES, lint
from tests.stacks.variants import COVERING, VARIANTS

TYPE_UNKNOWN_IN_THE_REGION = "E3628"
"""cfn-lint's list of offerings lacks some that are in src/trainium_core/data/instance_types.toml."""


@pytest.mark.parametrize("name", COVERING)
def test_cfn_lint_finds_only_known_false_positives(name: str) -> None:
    settings = VARIANTS[name]
    findings = lint(cluster_template(**settings).file, settings["region"])
    known = (CDK_WRITES_NEEDLESS_DEPENDENCIES, TYPE_UNKNOWN_IN_THE_REGION)
    assert [finding for finding in findings if finding.rule not in known] == []
