"""The arithmetic of quotas: rounding, usage of another market and nodes counted twice never make a limit sufficient."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.plans import from_settings, plans
from trainium_core.plan import Plan
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime.quota import Quota, QuotaState, QuotaUse, RunningInstance, quota_use
from trainium_runtime.quota_need import QuotaNeed

NEED = QuotaNeed(
    code="L-1",
    name="x",
    region="us-west-2",
    family="trn",
    capacity="on-demand",
    cluster="mine",
    nodes=2,
    vcpus_per_node=128,
)

instances = st.lists(
    st.builds(
        RunningInstance,
        vcpus=st.integers(1, 192),
        capacity=st.sampled_from(["on-demand", "spot", "capacity-block", "scheduled"]),
        cluster=st.sampled_from([None, "mine", "another"]),
    ),
    max_size=6,
)
vcpus = st.integers(0, 3000)


def need_of(**changes: object) -> QuotaNeed:
    return QuotaNeed(**{**vars(NEED), **changes})


def state_of(limit: float, use: QuotaUse) -> QuotaState:
    return QuotaState(need=NEED, quota=Quota(code="L-1", name="x", limit=limit), use=use)


@given(running=instances, reserved=vcpus)
def test_usage_without_metric_counts_instances_and_reservations(running: list[RunningInstance], reserved: int) -> None:
    use = quota_use(NEED, instances=running, reserved=reserved)
    others = [i.vcpus for i in running if i.capacity == "on-demand" and i.cluster != "mine"]
    assert use.certain == sum(others) + reserved


@given(running=instances, reserved=vcpus, metered=vcpus, ended=vcpus)
def test_metric_never_lowers_the_usage(running: list[RunningInstance], reserved: int, metered: int, ended: int) -> None:
    alone = quota_use(NEED, instances=running, reserved=reserved)
    assert quota_use(NEED, instances=running, reserved=reserved, metered=metered, ended=ended).certain >= alone.certain


@given(running=instances, reserved=vcpus, metered=vcpus)
def test_all_usage_in_the_metric_is_accounted_for(running: list[RunningInstance], reserved: int, metered: int) -> None:
    use = quota_use(NEED, instances=running, reserved=reserved, metered=metered)
    own = sum(i.vcpus for i in running if i.cluster == "mine" and i.capacity in ("on-demand", "capacity-block"))
    assert use.certain + use.in_blocks + own >= metered


def test_unexplained_usage_counts() -> None:
    assert quota_use(NEED, instances=[], metered=256, ended=128).unseen == 128


@given(running=instances)
def test_capacity_blocks_make_on_demand_unknown_and_not_spot(running: list[RunningInstance]) -> None:
    blocks = sum(i.vcpus for i in running if i.capacity == "capacity-block" and i.cluster != "mine")
    assert quota_use(NEED, instances=running).in_blocks == blocks
    assert quota_use(need_of(capacity="spot"), instances=running).in_blocks == 0


uses = st.builds(QuotaUse, running=vcpus, reserved=vcpus, unseen=st.floats(0, 3000), in_blocks=vcpus)


@given(limit=st.floats(0, 4000), use=uses)
def test_room_requires_used_and_needed_within_the_limit(limit: float, use: QuotaUse) -> None:
    state = state_of(limit, use)
    assert state.has_room == (use.running + use.reserved + use.unseen + 256 <= limit)
    assert state.has_room or not state.fits_in_worst_case


@given(limit=st.floats(0, 4000), use=uses)
def test_suggested_limit_is_the_smallest_for_the_worst_case(limit: float, use: QuotaUse) -> None:
    enough = state_of(limit, use).sufficient_limit
    assert state_of(enough, use).fits_in_worst_case
    assert not state_of(enough - 1, use).fits_in_worst_case


@given(limit=st.integers(0, 4000), use=uses)
def test_suggested_nodes_are_the_most_that_fit(limit: int, use: QuotaUse) -> None:
    fit = state_of(limit, use).nodes_that_fit
    taken = use.certain + use.in_blocks
    assert fit == 0 or fit * 128 + taken <= limit + 1e-6
    assert (fit + 1) * 128 + taken > limit


@given(plan=plans())
def test_need_survives_conversion_to_text_by_cloudformation(plan: Plan) -> None:
    need = quota_need(plan)
    if need is not None:
        as_text = {key: str(value) for key, value in need.to_properties().items()}
        assert QuotaNeed.from_properties({"ServiceToken": "arn", **as_text}) == need


@pytest.mark.parametrize(
    ("changes", "exceeds"),
    [
        ({}, False),
        ({"nodes": 1}, False),
        ({"nodes": 3}, True),
        ({"nodes": 32, "vcpus_per_node": 8}, False),
        ({"code": "L-2"}, True),
        ({"cluster": "renamed"}, False),
        ({"region": "us-east-1"}, True),
    ],
)
def test_larger_need_or_need_of_another_quota_exceeds(changes: dict[str, object], exceeds: bool) -> None:
    assert need_of(**changes).exceeds(NEED) == exceeds


def test_need_names_the_quota_and_the_cluster() -> None:
    need = quota_need(from_settings(nodes=3, cluster_name="bert"))
    assert need is not None
    assert (need.code, need.region, need.family, need.cluster) == ("L-2C3B7624", "us-west-2", "trn", "bert")
    assert (need.nodes, need.vcpus) == (3, 384)
