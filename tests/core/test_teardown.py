"""The destruction of a cluster: the order of its steps, what it leaves alone, and that it can be rerun at any point."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_teardown import (
    CACHE,
    CONSENT,
    FUNCTION,
    GROUP,
    OTHER_CLUSTER,
    OWN_CLUSTER,
    RECORDS,
    FakeClock,
    FakeTeardown,
    KilledError,
    cluster_stack,
    leftover,
    training_stack,
)
from trainium_core.naming import STACK_NAME
from trainium_core.nodes.aws_control import NodeGroup
from trainium_core.plan import Plan
from trainium_core.stacks.description import DescribedResource
from trainium_core.teardown.inventory import inventory
from trainium_core.teardown.leftovers import Workload
from trainium_core.teardown.run import StepOutcome, others_sentence, take_down, verdict
from trainium_core.teardown.scope import find_scope
from trainium_core.teardown.steps import StepProgress
from trainium_runtime.errors import RequestRefusedError, UnavailableError

NO_NODES = NodeGroup(name=GROUP, wanted=0, instances={})


def run(account: FakeTeardown, messages: list[str] | None = None, **options: Any) -> Sequence[StepOutcome]:
    clock, lines = FakeClock(), [] if messages is None else messages
    arguments: dict[str, Any] = {"pause": clock.pause, "now": clock.now, "has_job": lambda: False, **options}
    scope = find_scope(account, OWN_CLUSTER)
    return take_down(account, scope, on_progress=lambda step, now: lines.append(f"{step}: {now.message}"), **arguments)


def of(outcomes: Sequence[StepOutcome], step: str) -> StepOutcome:
    """The last outcome of the step with this name."""
    return [outcome for outcome in outcomes if outcome.step == step][-1]


def is_gone(account: FakeTeardown) -> bool:
    """Whether nothing of the cluster is left except retained resources."""
    ours = [*account.stacks, *account.work, *account.leftovers, *account.group.instances]
    return not ours and account.objects == {CACHE: 5, "their-bucket": 1}


def test_teardown_leaves_only_retained_and_foreign_resources() -> None:
    account = FakeTeardown()
    assert verdict(run(account)) == "gone"
    assert is_gone(account)
    assert len(account.foreign) == len(FakeTeardown().foreign)


def test_steps_run_in_order() -> None:
    run(account := FakeTeardown())
    kinds = list(dict.fromkeys(change.partition(" ")[0] for change in account.changes if "eni-1" not in change))
    assert kinds == ["stop", "announce", "empty_group", "delete_some", "delete_stack", "delete_leftover"]


def test_unattached_interface_is_deleted_before_its_stack() -> None:
    account = FakeTeardown()
    run(account)
    assert account.changes.index("delete_leftover eni-1") < account.changes.index("delete_stack stack/cluster")


def test_no_stack_is_deleted_while_an_instance_exists() -> None:
    account = FakeTeardown()
    messages: list[str] = []
    run(account, messages)
    assert any("nodes: 2 shutting-down" in line for line in messages)
    assert messages.index("nodes: none left") < [line[:6] for line in messages].index("stacks")


def changes_of_a_whole_teardown() -> int:
    account = FakeTeardown(failing=1)
    run(account)
    return len(account.changes)


@given(st.lists(st.integers(1, changes_of_a_whole_teardown()), max_size=4))
def test_teardown_killed_at_any_change_and_rerun_leaves_nothing(fatal: list[int]) -> None:
    account = FakeTeardown(failing=1)
    for number in fatal:
        account.changes, account.fatal = [], number
        try:
            run(account)
        except KilledError:
            continue
    account.fatal = 0
    assert verdict(run(account)) == "gone"
    assert is_gone(account)


def test_teardown_of_a_deleted_cluster_changes_nothing() -> None:
    account = FakeTeardown()
    run(account)
    account.changes.clear()
    assert verdict(run(account)) == "gone"
    assert account.changes == []


def test_group_scaled_up_again_is_scaled_to_0_permanently() -> None:
    account = FakeTeardown()
    scaled_up = False

    def meanwhile(_: float) -> None:
        nonlocal scaled_up
        if not scaled_up and account.group.instances == {"shutting-down": 2}:
            scaled_up, account.group = True, FakeTeardown().group

    assert verdict(run(account, pause=meanwhile, grace=timedelta())) == "gone"
    emptied = [change for change in account.changes if change.startswith("empty_group")]
    assert emptied == [f"empty_group {GROUP}", f"empty_group {GROUP} for good"]


def test_undeletable_stack_is_stuck_with_the_reason() -> None:
    account = FakeTeardown(failing=100)
    outcomes = run(account)
    assert verdict(outcomes) == "left"
    assert of(outcomes, "stacks").state == "stuck"
    assert "AWS::EC2::VPC vpc-1: it has dependencies" in of(outcomes, "stacks").message


def test_leftovers_are_deleted_only_after_the_stacks() -> None:
    account = FakeTeardown(failing=100)
    assert of(run(account), "snapshots").state == "not tried"
    assert "delete_leftover snap-1" not in account.changes


def test_protected_stack_prevents_every_change() -> None:
    account = FakeTeardown(stacks=[cluster_stack(protected=True), training_stack()])
    outcomes = run(account)
    assert verdict(outcomes) == "left"
    assert "update-termination-protection" in of(outcomes, "stacks").message
    assert account.changes == []


def test_stack_of_another_cluster_with_our_name_is_not_deleted() -> None:
    account = FakeTeardown(stacks=[cluster_stack(cluster=OTHER_CLUSTER)], leftovers=[], work=[])
    assert find_scope(account, OWN_CLUSTER).foreign
    run(account)
    assert account.changes == []


def test_stack_without_the_tag_is_not_deleted() -> None:
    account = FakeTeardown(stacks=[cluster_stack(cluster=None)], leftovers=[], work=[])
    run(account)
    assert account.changes == []


def test_stack_with_only_change_sets_is_deleted() -> None:
    bare = cluster_stack(cluster=None, status="REVIEW_IN_PROGRESS", resources=())
    account = FakeTeardown(stacks=[bare], leftovers=[], work=[])
    run(account)
    assert account.changes == ["delete_stack stack/cluster"]


def test_log_group_of_deleted_stack_of_another_cluster_is_kept() -> None:
    other = cluster_stack(status="DELETE_COMPLETE", cluster=OTHER_CLUSTER)
    account = FakeTeardown(stacks=[], deleted=[other], work=[])
    run(account)
    assert [each.resource_id for each in account.leftovers] == [f"/aws/lambda/{FUNCTION}"]


def test_log_groups_of_a_stack_with_a_longer_name_are_kept() -> None:
    account = FakeTeardown()
    run(account)
    assert any(each.resource_id == f"/aws/lambda/{STACK_NAME}-dev-Controller" for each in account.foreign)
    assert not [change for change in account.changes if f"{STACK_NAME}-dev" in change]


def test_unreadable_jobs_make_the_verdict_unknown() -> None:
    assert verdict(run(FakeTeardown(denied=frozenset({"running_work"})))) == "unknown"


def test_nothing_is_deleted_while_jobs_that_need_their_stack_are_unknown() -> None:
    """Without its stack, a job on EKS loses its role and bucket, and no later teardown would find it."""
    association = DescribedResource(kind="AWS::EKS::PodIdentityAssociation", resource_id="a-1")
    stack = replace(training_stack(), resources=(association,))
    account = FakeTeardown(stacks=[stack], denied=frozenset({"running_work"}))
    assert verdict(run(account)) == "unknown"
    assert account.changes == []


RETAINED_GROUP = DescribedResource(kind="AWS::AutoScaling::AutoScalingGroup", resource_id=GROUP, kept=True)


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "DELETE_COMPLETE"])
def test_nodes_of_a_retained_group_are_terminated(status: str) -> None:
    stack = cluster_stack(status=status, resources=(RETAINED_GROUP,))
    there = status == "CREATE_COMPLETE"
    account = FakeTeardown(stacks=[stack] if there else [], deleted=[] if there else [stack], leftovers=[], work=[])
    assert verdict(run(account)) == "gone"
    assert account.group.instances == {}


def test_retained_nodes_with_refused_termination_are_left() -> None:
    stack = cluster_stack(status="DELETE_COMPLETE", resources=(RETAINED_GROUP,))
    account = FakeTeardown(stacks=[], deleted=[stack], leftovers=[], work=[], refused=frozenset({"empty_group"}))
    assert verdict(run(account)) == "left"


def test_resource_of_an_existing_stack_is_not_a_leftover() -> None:
    account = FakeTeardown(owned={"snap-1": "Other"})
    run(account)
    assert account.leftovers == [leftover("snapshot", "snap-1")]


@pytest.mark.parametrize("error", [RequestRefusedError, UnavailableError], ids=["refused", "no answer"])
def test_bucket_that_cannot_be_emptied_does_not_stop_others(error: type[Exception]) -> None:
    class Locked(FakeTeardown):
        def delete_some(self, bucket: str) -> int:
            if bucket == "locked":
                raise error("it is locked")
            return super().delete_some(bucket)

    buckets = tuple(DescribedResource(kind="AWS::S3::Bucket", resource_id=name) for name in ("locked", RECORDS))
    deleted = [cluster_stack(status="DELETE_COMPLETE", resources=buckets)]
    account = Locked(stacks=[], deleted=deleted, leftovers=[], work=[])
    account.tags["locked"] = CONSENT
    outcomes = run(account)
    assert RECORDS not in account.objects
    assert "it is locked" in of(outcomes, "buckets left behind").message
    assert verdict(outcomes) != "gone"


def test_bucket_without_the_empty_at_delete_tag_is_kept() -> None:
    deleted = [cluster_stack(status="DELETE_COMPLETE")]
    tags = {RECORDS: {k: v for k, v in CONSENT.items() if v == OWN_CLUSTER}}
    account = FakeTeardown(stacks=[], deleted=deleted, tags=dict(tags), leftovers=[], work=[])
    run(account)
    assert account.changes == []


def test_unreadable_kind_is_unknown_and_others_are_deleted() -> None:
    account = FakeTeardown(denied=frozenset({"snapshot"}))
    outcomes = run(account)
    assert verdict(outcomes) == "unknown"
    assert of(outcomes, "snapshots").message == "not allowed: snapshot"
    assert {each.kind for each in account.leftovers} == {"snapshot"}


def test_refused_change_is_reported_as_left() -> None:
    outcomes = run(FakeTeardown(refused=frozenset({"delete_leftover"})))
    assert verdict(outcomes) == "left"
    assert of(outcomes, "snapshots").message == "snap-1: refused: delete_leftover snap-1"


def test_failed_poll_is_retried() -> None:
    account = FakeTeardown(work=[], group=NO_NODES, leftovers=[], denied=frozenset({"stack_progress"}))

    def mend(_: float) -> None:
        account.denied = frozenset()

    messages: list[str] = []
    assert verdict(run(account, messages, pause=mend)) == "gone"
    assert "stacks: not read, retrying: not allowed: stack_progress" in messages


def test_updating_stack_is_deleted_after_the_update() -> None:
    account = FakeTeardown(stacks=[cluster_stack(status="UPDATE_IN_PROGRESS")], refused=frozenset({"delete_stack"}))
    messages: list[str] = []

    def settle(_: float) -> None:
        if "is in UPDATE_IN_PROGRESS, and cannot be deleted yet" in messages[-1]:
            account.refused, account.stacks = frozenset(), [cluster_stack(status="UPDATE_COMPLETE")]

    assert verdict(run(account, messages, pause=settle, grace=timedelta())) == "gone"
    assert any("cannot be deleted yet" in line for line in messages)


def test_jobs_that_outlived_their_stack_are_stopped() -> None:
    account = FakeTeardown(stacks=[], deleted=[training_stack()], leftovers=[])
    account.work = [Workload(kind="training job", work_id="trn-pilot--job")]
    assert verdict(run(account)) == "gone"
    assert account.changes == ["stop trn-pilot--job"]


def test_nodes_that_a_group_keeps_are_left_to_cloudformation() -> None:
    class Protected(FakeTeardown):
        def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
            return [NodeGroup(name=GROUP, wanted=0, instances={"running": 1})] if names else []

    outcomes = run(Protected())
    assert "protected from scale-in" in of(outcomes, "nodes").message
    assert verdict(outcomes) == "gone"


WITH_A_WEBSITE = cluster_stack(
    resources=(
        *cluster_stack().resources,
        DescribedResource(kind="AWS::EC2::VPC", resource_id="vpc-1", other=True),
        DescribedResource(kind="AWS::AutoScaling::AutoScalingGroup", resource_id="website", other=True),
    )
)


def test_shared_stack_loses_nodes_and_unattached_interfaces() -> None:
    account = FakeTeardown(stacks=[WITH_A_WEBSITE], work=[])
    outcomes = run(account)
    assert verdict(outcomes) == "left"
    assert "1 AWS::EC2::VPC" in of(outcomes, "stacks").message
    assert [change for change in account.changes if change.startswith(("empty", "delete"))] == [
        f"empty_group {GROUP}",
        "delete_leftover eni-1",
    ]


def test_sentence_about_other_resources_counts_types_that_it_does_not_name() -> None:
    others = tuple(DescribedResource(kind=f"AWS::EC2::Kind{number}", resource_id="", other=True) for number in range(5))
    sentence = others_sentence(cluster_stack(resources=others))
    assert "1 AWS::EC2::Kind3 and resources of 1 other type, which" in sentence


def test_bucket_of_an_earlier_stack_is_announced_only_if_no_stack_stays() -> None:
    bucket = DescribedResource(kind="AWS::S3::Bucket", resource_id=RECORDS)
    earlier = replace(training_stack(), status="DELETE_COMPLETE", resources=(bucket,))
    shared = replace(WITH_A_WEBSITE, resources=WITH_A_WEBSITE.resources[-2:])
    account = FakeTeardown(stacks=[shared], deleted=[earlier], work=[])
    plan = Plan(instance_type="trn1.32xlarge", region="us-west-2")
    for whole_stacks in (False, True):
        scope = find_scope(account, OWN_CLUSTER, whole_stacks=whole_stacks)
        found = inventory(account, scope, plan, prices=None)
        assert (RECORDS in [item.name for item in found.to_delete]) is whole_stacks


def test_shared_stack_is_deleted_with_whole_stacks() -> None:
    account = FakeTeardown(stacks=[WITH_A_WEBSITE], work=[])
    scope = find_scope(account, OWN_CLUSTER, whole_stacks=True)
    clock = FakeClock()

    def on_progress(_step: str, _progress: StepProgress) -> None:
        pass

    outcomes = take_down(
        account, scope, on_progress=on_progress, pause=clock.pause, now=clock.now, has_job=lambda: False
    )
    assert verdict(outcomes) == "gone"
    assert "empty_group website" not in account.changes


def test_workload_that_does_not_report_stopping_is_stopped_once() -> None:
    class Slow(FakeTeardown):
        polls = 0

        def running_workloads(self, **_arguments: object) -> Sequence[Workload]:
            self.polls += 1
            return [Workload(kind="warm pool", work_id="pool")] if self.polls <= 5 else []

        def stop(self, work: Workload) -> None:
            self.changes.append(f"stop {work.work_id}")

    account = Slow()
    assert verdict(run(account)) == "gone"
    assert account.changes.count("stop pool") == 1


def test_launching_group_without_instances_is_scaled_to_0() -> None:
    account = FakeTeardown(group=NodeGroup(name=GROUP, wanted=2, instances={}))
    run(account)
    assert f"empty_group {GROUP}" in account.changes
