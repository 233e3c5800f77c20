"""The parts of a support archive, and the requests to AWS that they need."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from trainium_core.aws.account import AwsAccount
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import NodesReport, nodes_report, report_as_json
from trainium_core.plan import Plan
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.preflight.finding import verdict
from trainium_core.preflight.runner import preflight
from trainium_core.problems import PlanError
from trainium_core.setting_schema.forms import as_written
from trainium_core.support.archive import Part
from trainium_core.support.aws_support import AwsSupport
from trainium_runtime.errors import UnavailableError

SETTINGS_FILE = "settings.json"
_FILES = ("catalog", "prices")
"""Settings that are omitted, because their values are the contents of files."""


def settings_part(plan: Plan) -> Part:
    """The settings with their values, without catalogue and prices; of the setup script, only length and digest."""

    def settings() -> str:
        values = {name: as_written(setting_value(plan, name)) for name in SETTINGS if name not in _FILES}
        if plan.setup_script:
            script = plan.setup_script.encode()
            values["setup_script"] = f"{len(script)} bytes, SHA-256 {hashlib.sha256(script).hexdigest()}"
        return as_json(values)

    return Part(name=SETTINGS_FILE, gather=settings)


def problems_part(error: PlanError) -> Part:
    """The problems of settings that are not a valid plan."""
    return Part(name=SETTINGS_FILE, gather=lambda: as_json({"problems": [*map(asdict, error.problems)]}))


def account_parts(
    plan: Plan,
    stacks: Sequence[str],
    *,
    account: AwsAccount,
    qualifier: str,
    nodes: AwsNodes,
    history: AwsSupport,
    node_stack: str,
) -> list[Part]:
    """Structured records of the account.

    Args:
        plan: The plan.
        stacks: Names of the stacks whose events are included.
        account: The account, for the preflight.
        qualifier: The qualifier of `cdk bootstrap`.
        nodes: Reads the nodes.
        history: Reads events and scaling activities.
        node_stack: Name of the stack of the nodes.

    Returns:
        The parts. AWS is read when a part is gathered.
    """

    def node_table() -> str:
        found = _report(plan, nodes, node_stack)
        return as_json({**report_as_json(found), "members": [asdict(member) for member in found.membership.members]})

    def findings() -> str:
        found = preflight(plan, account, qualifier=qualifier)
        return as_json({"verdict": verdict(found), "findings": [*map(asdict, found)]})

    return [
        Part(name="preflight.json", gather=findings),
        *(Part(name=f"stack-events/{stack}.json", gather=_written(history.stack_history, stack)) for stack in stacks),
        Part(name="nodes.json", gather=node_table),
        Part(name="scaling-activities.json", gather=_written(history.scaling_activities, node_stack)),
    ]


def log_parts(
    plan: Plan, stacks: Sequence[str], *, nodes: AwsNodes, history: AwsSupport, node_stack: str
) -> list[Part]:
    """Raw logs of functions and nodes, and consoles of nodes that are not verified. These may contain secrets."""

    def consoles() -> Mapping[str, str]:
        found = _report(plan, nodes, node_stack)
        return history.consoles([node.instance_id for node in found.nodes if node.state != "verified"])

    return [
        *(Part(name=f"function-logs/{stack}", gather=partial(history.function_logs, stack)) for stack in stacks),
        Part(name="node-logs", gather=lambda: history.node_logs(node_stack)),
        Part(name="consoles", gather=consoles),
    ]


def _report(plan: Plan, nodes: AwsNodes, stack: str) -> NodesReport:
    deployed = nodes.nodes(stack)
    if deployed is None:
        raise UnavailableError(f"the stack {stack} does not exist")
    return nodes_report(deployed, replacements=plan.node.replacements if plan.node.recovery else 0)


def _written(read: Callable[[str], Any], stack: str) -> Callable[[], str]:
    return lambda: as_json(read(stack))


def as_json(value: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(value, indent=2, default=str) + "\n"
