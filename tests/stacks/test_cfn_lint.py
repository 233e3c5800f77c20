"""cfn-lint with the region of each template, so that it checks what the region offers."""

from collections import Counter

import pytest

from tests.constructs.synth import cluster_template
from tests.stacks.linting import CDK_WRITES_NEEDLESS_DEPENDENCIES, lint
from tests.stacks.variants import COVERING, VARIANTS

TYPE_UNKNOWN_IN_THE_REGION = "E3628"
LAGS_BEHIND = {
    ("p5e.48xlarge", "ap-southeast-2"),
    ("trn1.32xlarge", "ap-south-1"),
    ("trn1.32xlarge", "ap-southeast-2"),
    ("trn1.32xlarge", "ap-southeast-4"),
    ("trn2.3xlarge", "ap-south-2"),
    ("trn2.3xlarge", "ap-southeast-4"),
    ("trn2.3xlarge", "sa-east-1"),
    ("trn2u.48xlarge", "ap-south-2"),
}
"""Offerings of DescribeInstanceTypeOfferings that cfn-lint's list lacks: see data/instance_types.toml."""


@pytest.mark.parametrize("name", COVERING)
def test_cfn_lint_finds_only_known_false_positives(name: str) -> None:
    settings = VARIANTS[name]
    findings = lint(cluster_template(**settings).file, settings["region"])
    found = Counter(finding.rule for finding in findings)
    assert found.pop(CDK_WRITES_NEEDLESS_DEPENDENCIES) > 0
    lags = (settings["instance_type"], settings["region"]) in LAGS_BEHIND
    assert found == ({TYPE_UNKNOWN_IN_THE_REGION: 1} if lags else {}), [finding.message for finding in findings]
