"""Taking down a cluster whose stack, of an app of one's own, has other things as well, or another name."""

from tests.core.fake_teardown import GROUP, OWN_CLUSTER, FakeClock, FakeTeardown, cluster_stack
from tests.core.test_teardown import of, run
from trainium_core.stacks.description import MadeResource
from trainium_core.teardown.run import take_down, verdict
from trainium_core.teardown.scope import find_scope
from trainium_core.teardown.steps import Progress

WITH_A_WEBSITE = cluster_stack(
    resources=(
        *cluster_stack().resources,
        MadeResource(kind="AWS::EC2::VPC", resource_id="vpc-1", other=True),
        MadeResource(kind="AWS::AutoScaling::AutoScalingGroup", resource_id="website", other=True),
    )
)


def test_of_a_stack_that_has_other_things_only_the_nodes_end() -> None:
    account = FakeTeardown(stacks=[WITH_A_WEBSITE], work=[])
    outcomes = run(account)
    assert verdict(outcomes) == "left"
    assert "1 AWS::EC2::VPC" in of(outcomes, "stacks").message
    assert [change for change in account.changes if change.startswith(("empty", "delete"))] == [
        f"empty_group {GROUP}",
        "delete_leftover eni-1",
    ]


def test_a_stack_that_has_other_things_goes_if_that_is_asked_for() -> None:
    account = FakeTeardown(stacks=[WITH_A_WEBSITE], work=[])
    scope = find_scope(account, OWN_CLUSTER, whole_stacks=True)
    clock = FakeClock()

    def on_progress(_step: str, _progress: Progress) -> None:
        pass

    outcomes = take_down(account, scope, on_progress=on_progress, pause=clock.pause, now=clock.now)
    assert verdict(outcomes) == "gone"
    assert "empty_group website" not in account.changes
