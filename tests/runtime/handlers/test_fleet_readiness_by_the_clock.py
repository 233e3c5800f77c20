"""Custom::TrnFleetGate in a sleeping cluster, and with the number of nodes from the clock of a pilot."""

from tests.runtime.handlers.conftest import CloudFormation, Run
from tests.runtime.handlers.fleet import CLOCK_ARN, GROUP, NOON, Clock, Fleet, Lambda, client


def empty_the_group() -> None:
    client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=GROUP, MinSize=0, DesiredCapacity=0)


def test_gate_waits_for_terminated_nodes_when_cluster_goes_to_sleep(
    gate: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.fail(fleet.instances[0], "no longer relevant")
    gate(Nodes="0")
    assert cloudformation.response["Data"] == {"Summary": "no nodes, as planned: the cluster is asleep"}
    assert fleet.sizes == [0]
    assert clock.now > NOON.timestamp()


def test_clock_does_not_raise_the_number_of_nodes(gate: Run, fleet: Fleet, functions: Lambda) -> None:
    functions.clock_results = [{"nodes": 2, "why": "the pilot runs"}]
    fleet.prove(*fleet.instances)
    gate(Nodes="1", Clock=CLOCK_ARN)
    assert fleet.sizes == [1]


def test_no_nodes_are_expected_before_a_capacity_block(
    gate: Run, functions: Lambda, cloudformation: CloudFormation
) -> None:
    empty_the_group()
    functions.clock_results = [{"nodes": 0, "why": "Capacity Block cr-1 begins at 2026-12-01T11:30Z"}]
    gate(Clock=CLOCK_ARN)
    sent = "no nodes, as planned: Capacity Block cr-1 begins at 2026-12-01T11:30Z"
    assert cloudformation.response["Data"] == {"Summary": sent}


def test_clock_denied_by_aws_at_first_is_retried(
    gate: Run, fleet: Fleet, functions: Lambda, cloudformation: CloudFormation
) -> None:
    fleet.prove(*fleet.instances)
    functions.clock_results = [{"errorMessage": "AccessDenied"}, {"nodes": 2, "why": "the pilot runs"}]
    gate(Clock=CLOCK_ARN)
    assert cloudformation.response["Status"] == "SUCCESS"


def test_failing_clock_fails_deployment_with_its_message(
    gate: Run, functions: Lambda, cloudformation: CloudFormation
) -> None:
    functions.clock_results = [{"errorMessage": "no such reservation"}]
    gate(Clock=CLOCK_ARN)
    assert "no such reservation" in cloudformation.response["Reason"]


def test_sleeping_cluster_needs_no_clock(gate: Run, cloudformation: CloudFormation) -> None:
    empty_the_group()
    gate(Nodes="0", Clock=CLOCK_ARN)
    assert cloudformation.response["Status"] == "SUCCESS"
