"""Twelve-month costs: amounts follow from drivers, and amounts that depend on an unknown driver are unknown."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.evidence_records import GPU_SIDE, LAB_SIDE, TRAINIUM_SIDE, with_hardware, with_metric, with_workload
from trainium_core.costs.estimate import Estimate, estimate, stack_cost_items
from trainium_core.evidence.record import Record, RecordedRun, Tool, read_record, record_text
from trainium_core.evidence.tco import Tco, tco, tco_records, tco_warnings, total_metric
from trainium_core.evidence.tco_file import read_tco_file
from trainium_core.evidence.tco_side import TcoError, check_plan
from trainium_core.evidence.toml_file import TomlFileError
from trainium_core.plan.context import plan_from_context

SOURCED = 'source = "training plan", date = 2026-11-01'
TRN = replace(
    TRAINIUM_SIDE, runs=tuple(RecordedRun(phases={"compile_cold": seconds}) for seconds in (360.0, 540.0, 720.0))
)


def side(name: str, *, usd_hour: float = 10, days: float = 30, more: str = "") -> str:
    """A side of the file. The GPU has no cold compilations."""
    return f"""
[sides.{name}]
record = "{name}.json"
idle_share = {{ value = 0.2, low = 0.1, high = 0.5, {SOURCED} }}
compilations = {{ value = {0 if name == "gpu" else 10}, {SOURCED} }}
engineering_days = {{ value = {days}, low = {days / 2}, high = {days * 2}, {SOURCED} }}
day_usd = {{ value = 800, {SOURCED} }}
{more}
[[sides.{name}.hours]]
option = "on-demand"
usd_hour = {{ value = {usd_hour}, {SOURCED} }}
"""


def stated(*sides: str, work: float = 36e6) -> str:
    return f"work = {{ value = {work}, low = {work / 2}, high = {work * 2}, {SOURCED} }}\n" + "".join(sides)


def computed(text: str, *records: Record, estimates: tuple[Estimate | None, ...] = (None, None)) -> Tco:
    return tco(read_tco_file(text), records, estimates[: len(records)])


def amounts(found: Tco, at: int = 0) -> Mapping[str, float | None]:
    cost = found.sides[at]
    return {line.name: cost.amount(line, cost.values) for line in cost.lines}


def test_amounts_follow_from_work_throughput_and_price() -> None:
    costs = computed(stated(side("trn")), TRN)
    # 36e6 tokens at 10 per second: 1,000 h. Ten compilations of 540 s: 1.5 h. A fifth of all hours is idle.
    assert amounts(costs) == pytest.approx(
        {
            "Hours at work, on-demand": 10_000,
            "Compilation": 15,
            "Idle hours": 10_015 / 4,
            "Engineering": 24_000,
        }
    )
    assert total_metric(costs.sides[0]).value == pytest.approx(10_015 * 1.25 + 24_000)


@given(share=st.floats(0, 1), first=st.floats(0.01, 1e3), second=st.floats(0.01, 1e3))
def test_hours_of_two_options_cost_their_shares(share: float, first: float, second: float) -> None:
    row = '[[sides.trn.hours]]\noption = "{}"\nshare = {!r}\nusd_hour = {{ value = {!r}, ' + SOURCED + " }}\n"
    base = stated(side("trn")).partition("[[sides.trn.hours]]")[0]
    by_line = amounts(computed(base + row.format("a", share, first) + row.format("b", 1 - share, second), TRN))
    assert by_line["Hours at work, a"] == pytest.approx(1000 * share * first)
    assert by_line["Hours at work, b"] == pytest.approx(1000 * (1 - share) * second)


def test_missing_measurement_leaves_dependent_amounts_unknown() -> None:
    unmeasured = with_metric(
        TRN, value=None, low=None, high=None, level=None, origin=None, method=None, why_null="the job failed"
    )
    costs = computed(stated(side("trn"), side("gpu")), unmeasured, GPU_SIDE)
    assert amounts(costs)["Hours at work, on-demand"] is None
    assert amounts(costs)["Idle hours"] is None
    assert total_metric(costs.sides[0]).value is None
    assert costs.saving.value is None
    assert costs.break_even.value is None
    assert costs.swings == []
    assert "no measurement: the job failed" in costs.sides[0].why_unknown(costs.sides[0].lines[0])


def test_gpu_without_compilations_has_a_saving() -> None:
    assert {run.phases["compile_cold"] for run in GPU_SIDE.runs} == {None}
    costs = computed(stated(side("trn"), side("gpu", usd_hour=50)), TRN, GPU_SIDE)
    assert amounts(costs, 1)["Compilation"] == 0
    assert costs.saving.value == pytest.approx(50_000 * 1.25 - 10_015 * 1.25)


@pytest.mark.parametrize("stated_number", ["value = 0, high = 9", "value = 9"])
def test_compilations_of_unknown_duration_have_unknown_costs(stated_number: str) -> None:
    gpu = side("gpu").replace("compilations = { value = 0", f"compilations = {{ {stated_number}")
    costs = computed(stated(side("trn"), gpu), TRN, GPU_SIDE)
    assert amounts(costs, 1)["Compilation"] is None
    assert costs.sides[1].why_unknown(costs.sides[1].lines[1]) == (
        "no run measured a cold compilation: state compile_seconds"
    )


def test_stated_duration_of_a_compilation_replaces_the_measured_one() -> None:
    more = f"compile_seconds = {{ value = 3600, {SOURCED} }}"
    warm = replace(TRN, runs=tuple(replace(run, phases={"compile_warm": 5.0}) for run in TRN.runs))
    for record in (TRN, warm):
        assert amounts(computed(stated(side("trn", more=more)), record))["Compilation"] == pytest.approx(100)


def test_saving_has_the_range_of_both_throughputs() -> None:
    costs = computed(stated(side("trn"), side("gpu", usd_hour=50)), TRN, GPU_SIDE)
    saving = costs.saving
    ported = 24_000
    assert saving.low == pytest.approx((50_000 / 1.1 - 10_000 / 0.9 - 15) * 1.25 - ported + ported)
    assert saving.high == pytest.approx((50_000 / 0.9 - 10_000 / 1.1 - 15) * 1.25 - ported + ported)
    assert saving.method == "total of gpu - total of trn; range: at the ends of the intervals of both throughputs"


def test_interval_that_reaches_zero_is_shown_and_leaves_no_range() -> None:
    wide = with_metric(TRN, low=-2.0, high=22.0)
    costs = computed(stated(side("trn"), side("gpu", usd_hour=50)), wide, GPU_SIDE)
    assert costs.drivers["trn.throughput"].low == -2
    assert (costs.saving.low, costs.saving.high) == (None, None)
    why = "the interval of trn: tokens per second, -2 to 22 tokens/s, reaches 0, so the cost has no upper end"
    assert costs.saving.why_null == why
    assert why in [*tco_warnings(costs)]
    assert not any(swing.driver.key == "trn.throughput" for swing in costs.swings)


def test_different_purchase_options_are_named_beside_the_saving() -> None:
    other = side("gpu", usd_hour=50).replace('"on-demand"', '"spot"')
    saving = computed(stated(side("trn"), other), TRN, GPU_SIDE).saving
    assert str(saving.method).endswith("; purchase options: trn: on-demand; gpu: spot")


OPTIONAL = ("idle_share", "compilations", "engineering_days", "day_usd")


@given(omitted=st.sets(st.sampled_from(OPTIONAL), min_size=1))
def test_unstated_number_is_unknown_and_never_zero(omitted: set[str]) -> None:
    text = "\n".join(
        line for line in stated(side("trn")).splitlines() if not line.startswith(tuple(f"{key} =" for key in omitted))
    )
    cost = computed(text, TRN).sides[0]
    assert cost.total(cost.values) is None
    reasons = " ".join(cost.why_unknown(line) for line in cost.lines)
    assert all(f"{key} is not stated" in reasons for key in omitted)


@given(work=st.floats(1e3, 1e15), rate=st.floats(1e-2, 1e9), price=st.floats(0, 1e4), other=st.floats(0, 1e4))
def test_total_swings_and_records_are_consistent(work: float, rate: float, price: float, other: float) -> None:
    measured = with_metric(TRN, value=rate, low=rate / 2, high=rate * 2)
    costs = computed(
        stated(side("trn", usd_hour=price), side("gpu", usd_hour=other, days=1), work=work), measured, GPU_SIDE
    )
    cost = costs.sides[0]
    assert cost.total(cost.values) == pytest.approx(sum(amount or 0 for amount in amounts(costs).values()))
    for record in tco_records(costs, made="2026-11-24T12:00:00Z", tool=Tool(version="1"), inputs=()):
        assert read_record(record_text(record)) == record
    for swing in costs.swings:
        ends = sorted((swing.at_low, swing.at_high))
        assert ends[0] - 1e-6 * abs(ends[0]) <= (costs.result(costs.values) or 0) <= ends[1] + 1e-6 * abs(ends[1])


@given(price=st.floats(0.1, 100), other=st.floats(0.1, 100), days=st.floats(1, 300))
def test_costs_of_both_sides_are_equal_at_break_even(price: float, other: float, days: float) -> None:
    costs = computed(stated(side("trn", usd_hour=price, days=days), side("gpu", usd_hour=other, days=0)), TRN, GPU_SIDE)
    hours = costs.break_even.value
    yearly = [cost.total(cost.values) or 0 for cost in costs.sides]
    ported = days * 800
    if hours is None:
        assert yearly[0] - ported >= yearly[1] * (1 - 1e-9) - 0.01
        assert "never" in str(costs.break_even.why_null)
    else:
        spent = [hours / 1000 * (yearly[0] - ported) + ported, hours / 1000 * yearly[1]]
        assert spent[0] == pytest.approx(spent[1])


def test_cheaper_port_with_dearer_work_costs_less_only_at_first() -> None:
    gpu = replace(GPU_SIDE, metrics=TRN.metrics)
    costs = computed(stated(side("trn", usd_hour=2.0, days=0), side("gpu", usd_hour=1.0, days=1)), TRN, gpu)
    begin, _, rest = str(costs.break_even.why_null).partition(" h of work")
    hours = float(begin.removeprefix("none: trn costs less only for the first ").replace(",", ""))
    yearly = [cost.total(cost.values) or 0 for cost in costs.sides]
    assert hours / 1000 * yearly[0] == pytest.approx(hours / 1000 * (yearly[1] - 800) + 800, rel=0.01)
    assert rest == ", because its engineering costs less and its year of work costs more"


def test_port_to_a_side_of_equal_cost_never_pays_off() -> None:
    gpu = replace(GPU_SIDE, metrics=TRN.metrics)
    warm = side("trn").replace("compilations = { value = 10", "compilations = { value = 0")
    costs = computed(stated(warm, side("gpu", days=0)), TRN, gpu)
    assert costs.break_even.why_null == "never: apart from engineering, a year of work does not cost less on trn"


@pytest.mark.parametrize("change", [{"seq": 256}, {"model": "another"}, {"precision": None}, {"dataset_sha256": None}])
def test_incomparable_records_give_no_saving(change: dict[str, Any]) -> None:
    gpu = with_workload(GPU_SIDE, **change)
    costs = computed(stated(side("trn"), side("gpu")), TRN, gpu)
    assert costs.saving.value is None
    assert str(costs.saving.why_null).startswith("not comparable: ")
    assert costs.break_even.value is None
    assert total_metric(costs.sides[1]).value is not None


def test_lab_side_stays_lab_and_refuses_a_plan() -> None:
    costs = computed(stated(side("lab")), replace(LAB_SIDE, metrics=TRN.metrics, runs=TRN.runs))
    (record,) = tco_records(costs, made="2026-11-24T12:00:00Z", tool=Tool(version="1"), inputs=())
    assert record.side == "lab"
    assert record.hardware.type.startswith("lab:")
    assert "unknown: Hours at work, on-demand, Compilation, Idle hours" in str(record.metrics["total"].why_null)
    assert any("measured on a stand-in" in warning for warning in tco_warnings(costs))
    with pytest.raises(TcoError, match=r"prices of cdk\.json are for other machines"):
        computed(stated(side("lab", more='plan = "cdk.json"')), LAB_SIDE)


PLAN = plan_from_context({"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 2}, Path())
ESTIMATE = estimate(PLAN, aws=None, items=stack_cost_items)
PLANNED = with_hardware(TRN, type="trn1.32xlarge", nodes=2, usd_hour=None, price_source=None, price_date=None)


def planned(more: str = "") -> Tco:
    text = stated(side("trn", more=more)).partition("[[sides.trn.hours]]")[0]
    return computed(text, PLANNED, estimates=(ESTIMATE,))


def test_plan_adds_the_lines_of_its_estimate() -> None:
    by_line = amounts(planned())
    assert by_line["Hours at work, on-demand"] == pytest.approx(43_000)
    paid_hours = 1001.5 * 1.25
    assert by_line["NAT gateway"] == pytest.approx(0.045 * paid_hours)
    assert by_line["S3 storage"] is None


def test_hours_of_a_plan_are_those_of_its_nodes_because_its_other_items_have_lines() -> None:
    text = stated(side("trn")).partition("[[sides.trn.hours]]")[0]
    priced = with_hardware(PLANNED, usd_hour=43.17, price_source="trn estimate", price_date="2026-11-24")
    assert amounts(computed(text, priced, estimates=(ESTIMATE,)))["Hours at work, on-demand"] == pytest.approx(43_000)
    assert amounts(computed(text, priced))["Hours at work, on-demand"] == pytest.approx(43_170)


def test_item_billed_by_use_costs_its_stated_use() -> None:
    use = f'monthly_use = {{ "S3 storage" = {{ value = 1000, {SOURCED} }} }}'
    assert amounts(planned(use))["S3 storage"] == pytest.approx(1000 * 12 * 0.023)


def test_use_of_an_item_that_the_plan_lacks_is_refused() -> None:
    with pytest.raises(
        TcoError, match=r"monthly_use has S4; billed by use: S3 storage, NAT gateway data, Data to the internet"
    ):
        planned(f'monthly_use = {{ "S4" = {{ value = 1, {SOURCED} }} }}')


def test_use_is_refused_if_nothing_in_the_plan_is_billed_by_use() -> None:
    more = f'plan = "cdk.json"\nmonthly_use = {{ "S3 storage" = {{ value = 1, {SOURCED} }} }}'
    with pytest.raises(TcoError, match=r"billed by use: nothing in cdk\.json"):
        computed(stated(side("trn", more=more)), PLANNED, estimates=(replace(ESTIMATE, lines=()),))


def test_plan_of_other_instances_is_refused() -> None:
    (file,) = read_tco_file(stated(side("trn", more='plan = "cdk.json"'))).sides
    with pytest.raises(TcoError, match=r"plans 4 x trn1\.32xlarge, and trn\.json was measured on 2 x trn1\.32xlarge"):
        check_plan(file, PLANNED, "trn1.32xlarge", 4)
    check_plan(file, PLANNED, "trn1.32xlarge", 2)


def test_work_beyond_a_year_requires_several_clusters() -> None:
    costs = computed(stated(side("trn"), work=36e7), TRN)
    assert any("needs 1.4 clusters" in warning for warning in tco_warnings(costs))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "training plan", ', "", "has no source"),
        (", date = 2026-11-01", "", "has no date"),
        ("value = 0.2, low = 0.1", "value = 0.2, low = 0.3", "must have low <= value <= high"),
        ("value = 0.2, low = 0.1, high = 0.5", "value = 1.0", "must be less than 1"),
        ("value = 36000000.0, low", "value = 0, low", "must be more than 0"),
        (f"day_usd = {{ value = 800, {SOURCED} }}", "day_usd = {}", "day_usd has no value"),
        ("value = 10, ", "value = -1, ", "must be a number of 0 or more"),
        ("value = 10, ", "value = nan, ", "must be a number of 0 or more"),
        ("idle_share", "idle_shares", "nearest: idle_share"),
        ('record = "trn.json"', "", "sides.trn.record is missing"),
        ('option = "on-demand"', 'option = "on-demand"\nshare = 0.4', "the shares sum to 0.4, not 1"),
        ("[sides.trn]", "sides.trn.x = 1\n[", "is not TOML"),
    ],
)
def test_problem_in_the_file_is_named(old: str, new: str, message: str) -> None:
    text = stated(side("trn"))
    assert old in text
    with pytest.raises(TomlFileError, match=message):
        read_tco_file(text.replace(old, new, 1))


@pytest.mark.parametrize("value", ["'many'", "-5", "inf", "1" + "0" * 400])
def test_invalid_number_is_the_only_problem(value: str) -> None:
    text = stated(side("trn"))
    with pytest.raises(TomlFileError) as raised:
        read_tco_file(text.replace("value = 36000000.0, low", f"value = {value}, low", 1))
    [problem] = raised.value.problems
    assert problem.startswith("work.value is ")
    assert problem.endswith("; it must be a number of 0 or more")
