"""Prints the results of the code that uses engines, for the tiny engine, as JSON.

test_new_engine.py runs this in a copy of the core that has the engine.
"""

import json
import sys

from click.testing import CliRunner

from tests.core.fake_account import FakeAccount
from tests.core.plans import GOOD, from_settings, problems_of
from trainium_cli.main import trn
from trainium_core.audit.listings.registry import LISTINGS
from trainium_core.engines.tiny.aws_workloads import STOPPED
from trainium_core.preflight.runner import preflight
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.scope import Scope, belongs_to_cluster
from trainium_runtime.naming import CLUSTER_TAG

SETTINGS = {**GOOD, "stacks": "tiny", "tiny_size": "3"}


def run(command: str, *options: str) -> str:
    settings = [word for key, value in SETTINGS.items() for word in ("-c", f"trn:{key}={value}")]
    return CliRunner().invoke(trn, [command, *settings, *options]).stdout


plan = json.loads(run("plan", "--json"))
estimate = json.loads(run("estimate", "--offline", "--json"))
findings = {finding.check: finding.found for finding in preflight(from_settings(**SETTINGS), FakeAccount())}
teardown = AwsTeardown("us-west-2")
for work in teardown.running_workloads(engines=["tiny"], cluster="trn-pilot", state_machines=[]):
    teardown.stop(work)
tags = {CLUSTER_TAG: "trn-pilot", "aws:cloudformation:stack-name": "TinyStack"}
json.dump(
    {
        "setting": plan["plan"]["tiny_size"],
        "warning": plan["warnings"]["tiny_size"],
        "in trn settings": "GiB that the tiny engine has" in CliRunner().invoke(trn, ["settings"]).stdout,
        "problems": [str(problem.allowed) for problem in problems_of(stacks="tiny", tiny_size=10)],
        "stacks": [str(problem.allowed) for problem in problems_of(stacks="none")],
        "costs": [line["what"] for line in estimate["lines"]],
        "check": findings["tiny"],
        "state of its stack": findings["stack"],
        "checks of others": sorted({"quota", "hyperpod"} & findings.keys()),
        "audited": [listing.kind for listing in LISTINGS if listing.service == "tiny"],
        "stopped": STOPPED,
        "torn down": belongs_to_cluster(tags, Scope(cluster="trn-pilot").cluster),
    },
    sys.stdout,
)
