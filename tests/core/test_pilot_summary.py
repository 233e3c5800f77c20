"""The first screen of a report answers what Trainium costs and saves, and how sure that is."""

import re
from dataclasses import replace

from tests.core.evidence_records import with_workload
from tests.core.test_pilot_report import GOOD, GPU, LAB_RECORD, WHOLE, evidence, page, twelve_months
from trainium_core.evidence.figures import by_side
from trainium_core.evidence.folder import Evidence
from trainium_core.evidence.metric import Metric, unknown
from trainium_core.evidence.record import LAB, Comparability, Record, RecordedRun
from trainium_core.evidence.report import arrange
from trainium_core.evidence.summary import KeyResult, key_results


def key_result(pilot: Evidence, title: str) -> KeyResult:
    return next(result for result in key_results(pilot) if result.title.startswith(title))


def test_first_screen_has_cost_and_throughput_beside_the_gpu() -> None:
    cost = Metric(value=0.33, unit="USD per million tokens", n=3, origin="derived", method="x", low=0.3, high=0.4)
    ratio = Metric(value=0.48, unit="ratio", low=0.46, high=0.51, level=0.95, method="x", origin="derived")
    none = unknown("ratio", "not comparable: price basis (on-demand against spot)")
    paid, listed = "usd_per_million_tokens_paid", "usd_per_million_tokens_list"
    costs = {paid: cost, listed: replace(cost, value=0.35), "usd_per_million_requests_paid": replace(cost, value=0.31)}

    def beside(**ratios: Metric) -> Evidence:
        compared = Comparability(against="lm-p5", equal=(), different=(), comparable=True, ratios=ratios)
        return evidence(
            replace(GOOD, metrics={**GOOD.metrics, **costs}, comparable=(compared,)),
            replace(GPU, metrics={**GPU.metrics, **costs}),
        )

    result = key_result(beside(**{paid: ratio, listed: ratio}), "Cost per million tokens")
    assert (result.title, result.text) == ("Cost per million tokens, as paid", "48 % of the GPU")
    assert result.details[0] == "46 % to 51 % (95% interval)"
    assert "Trainium, 1 x trn2.3xlarge: 0.33 USD, 0.3 to 0.4 (range), on-demand" in result.details
    result = key_result(beside(**{paid: none, listed: ratio}), "Cost per million tokens")
    assert (result.title, result.text) == ("Cost per million tokens, list price", "48 % of the GPU")
    assert key_result(beside(), "Cost per million requests").text == "0.31 USD"
    assert "no ratio: not comparable: price basis (on-demand against spot)" in key_result(
        beside(tokens_per_second=none), "Tokens per second"
    ).details  # fmt: skip


def test_first_screen_has_saving_break_even_contract_and_runs() -> None:
    assert re.fullmatch(r"[\d,]+ USD", key_result(WHOLE, "Saving").text)
    measured, assumed = key_result(WHOLE, "Saving").details
    assert re.fullmatch(r"[\d,]+ to [\d,]+, by the intervals of both throughputs", measured)
    assert re.fullmatch(r"one input at an end of its range: -?[\d,]+ \(.+\) to [\d,]+ \(.+\)", assumed)
    assert key_result(WHOLE, "Break-even").text.startswith("after ")
    assert key_result(WHOLE, "Break-even").details == ("engineering costs no more than on the other side",)
    assert key_result(WHOLE, "Contract").text == "6 of 6 unanswered"
    failed = replace(GOOD, runs=(*GOOD.runs, RecordedRun(job="lm-9", excluded="the job did not succeed: exit code 1")))
    runs = key_result(evidence(failed), "Runs")
    assert runs.text == "3 on Trainium"
    assert runs.details == (
        "Trainium, 1 x trn2.3xlarge: 3 runs, 2026-11-24",
        "lm-9 does not count: the job did not succeed: exit code 1",
    )


def test_runs_are_first_and_name_their_machines() -> None:
    quoted = replace(GPU, id="lm-h100", runs=(), metrics={})
    runs, *_ = key_results(evidence(GOOD, GPU, quoted, LAB_RECORD))
    assert (runs.title, runs.text) == ("Runs", "3 on Trainium, 3 on GPUs, 3 on stand-ins")
    assert runs.details == (
        "Trainium, 1 x trn2.3xlarge: 3 runs, 2026-11-24",
        "GPU, 1 x p5.4xlarge: no run: numbers from elsewhere, 2026-11-24",
        "GPU, 1 x p5.4xlarge: 3 runs, 2026-11-24",
        "1 x stand-in for trn2.3xlarge: 3 runs, on local CPUs, 2026-11-24",
    )


def test_unknown_break_even_has_its_reason() -> None:
    for pilot in (evidence(), evidence(GOOD, GPU)):
        assert key_result(pilot, "Break-even").details == ("trn tco has not computed the costs",)
    why = "not comparable: seq (128 against 7)"
    record = replace(GOOD, kind="tco", gates=(), fidelity=(), metrics={"break_even_hours": unknown("h", why)})
    assert key_result(evidence(record), "Break-even").details == (why,)


def test_first_screen_without_records_says_what_is_missing() -> None:
    results = {result.title: result.text for result in key_results(evidence())}
    assert results == {
        "Runs": "none on Trainium",
        "Cost per million tokens": "not measured",
        "Tokens per second": "not measured",
        "Saving in twelve months": "unknown",
        "Break-even": "unknown",
        "Contract": "6 of 6 unanswered",
    }


def test_saving_of_the_lab_alone_is_named_as_the_reason() -> None:
    year = [
        replace(
            record, side="lab", hardware=replace(record.hardware, type=f"lab:{record.hardware.type}"), comparable=()
        )
        for record in twelve_months()
    ]
    assert key_result(evidence(LAB_RECORD, *year), "Saving").details == (
        "trn tco has no costs of Trainium, only of stand-ins",
    )


def test_saving_of_the_other_side_says_what_to_do() -> None:
    ours, theirs = twelve_months()
    turned = (
        replace(ours, side="gpu", hardware=GPU.hardware),
        replace(theirs, side="trainium", hardware=GOOD.hardware),
    )
    assert key_result(evidence(GOOD, GPU, *turned), "Saving").details == (
        "trn tco has computed the saving of another side: in its file, state the Trainium side first",
    )


def test_first_screen_is_about_one_workload_and_names_it() -> None:
    newer = with_workload(replace(GOOD, id="serve-trn2", made="2026-11-25T12:00:00Z"), name="serve")
    pilot = evidence(GOOD, GPU, newer, *twelve_months())
    assert key_result(pilot, "Saving").details == ("workload serve", "trn tco has not computed the costs")
    assert key_result(pilot, "Tokens per second").details[:2] == (
        "workload serve",
        "Trainium, 1 x trn2.3xlarge: 10 tokens/s, 9 to 11 (95%)",
    )


def test_ratio_to_imported_numbers_names_their_source_and_date() -> None:
    rate = Metric(value=20.0, unit="tokens/s", origin="quoted", source="run 4711", date="2026-10-20")
    imported = replace(GPU, id="lm-h100", runs=(), metrics={"tokens_per_second": rate})
    report = arrange(evidence(GOOD, replace(imported, made="2026-11-25T12:00:00Z"), GPU))
    result = next(result for result in report.key_results if result.title == "Tokens per second")
    assert result.text == "50 % of the GPU"
    assert result.details == (
        "no interval: a side has no interval above 0",
        "Trainium, 1 x trn2.3xlarge: 10 tokens/s, 9 to 11 (95%)",
        "GPU, 1 x p5.4xlarge: 20 tokens/s, quoted, run 4711, 2026-10-20",
    )


def test_newest_record_with_a_ratio_stands_beside_trainium() -> None:
    newer = replace(with_workload(GPU, seq=7), id="lm-other", made="2026-11-25T12:00:00Z")
    report = arrange(evidence(GOOD, GPU, newer))
    result = next(result for result in report.key_results if result.title == "Tokens per second")
    assert result.text == "100 % of the GPU"


def test_money_comes_before_findings_in_the_code() -> None:
    assert re.findall("<h2>(.*?)</h2>", page(WHOLE))[:6] == [
        "Cost",
        "Performance",
        "Results: gates and tolerances",
        "Contract",
        "Six steps",
        "Findings in the code",
    ]


def test_every_table_has_its_columns_in_the_same_order() -> None:
    def lab_record(record: Record, made: str) -> Record:
        return replace(
            record,
            side=LAB,
            made=made,
            hardware=replace(record.hardware, type=f"lab:{record.hardware.type}"),
            comparable=(),
        )

    gpu, ours = lab_record(GPU, "2026-11-24T10:00:00Z"), lab_record(GOOD, "2026-11-24T11:00:00Z")
    assert [record.id for record in by_side([gpu, ours])] == [ours.id, gpu.id]
    year = [lab_record(record, "2026-11-24T13:00:00Z") for record in twelve_months()]
    report = arrange(evidence(gpu, ours, *reversed(year)))
    types = [[record.hardware.type for record in table.records] for table in report.tables["Performance"]]
    assert [[record.hardware.type for record in report.year]] == types == [["lab:trn2.3xlarge", "lab:p5.4xlarge"]]
