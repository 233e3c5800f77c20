"""FleetReadiness: its properties, and what it may do."""

from functools import cache

from tests.constructs.synth import Json, Template, as_list, new_stack, synthesize
from trainium_cdk.fleet.fleet_readiness import FleetReadiness
from trainium_cdk.fleet.node_reconciler import NodeReconciler
from trainium_cdk.fleet.node_records import NodeRecords


@cache
def gate() -> Template:
    stack = new_stack()
    records = NodeRecords(stack, "Records")
    keeper = NodeReconciler(stack, "Keeper", group_name="fleet", cluster_name="pilot", records=records, replacements=3)
    FleetReadiness(
        stack,
        "Gate",
        group_name="fleet",
        cluster_name="pilot",
        nodes="4",
        launch_template_version="7",
        records=records,
        reconciler=keeper,
        timeout_minutes=30,
    )
    return synthesize(stack)


def resource() -> Json:
    (gate_resource,) = gate().resources("Custom::TrnFleetGate").values()
    return gate_resource


def of_watcher(template: Template) -> list[Json]:
    """What the watcher may do, but for its log."""
    return [
        statement
        for name, policy in template.resources("AWS::IAM::Policy").items()
        if "Watcher" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if not as_list(statement["Action"])[0].startswith("logs:")
    ]


def test_cloudformation_waits_longer_than_the_gate() -> None:
    properties = resource()["Properties"]
    assert int(properties["ServiceTimeout"]) > 60 * properties["TimeoutMinutes"]


def test_watcher_and_keeper_may_do_all_they_need_before_the_gate_is_tried() -> None:
    needed = {name for name in gate().resources() if "Watcher" in name or "Keeper" in name}
    assert needed <= set(resource()["DependsOn"])


def test_the_watcher_may_read_the_consoles_of_its_cluster_alone() -> None:
    (statement,) = [s for s in of_watcher(gate()) if s["Action"] == "ec2:GetConsoleOutput"]
    assert statement["Condition"] == {"StringEquals": {"aws:ResourceTag/trn:cluster": "pilot"}}
