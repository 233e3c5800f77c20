"""The first screen of a report answers what Trainium costs and saves, and how sure that is."""

import re
from dataclasses import replace

from tests.core.test_pilot_report import GOOD, GPU, WHOLE, evidence, page
from trainium_core.evidence.folder import Evidence
from trainium_core.evidence.metric import Metric, unknown
from trainium_core.evidence.record import Comparability, RecordedRun
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
    assert "Trainium: 0.33 USD, 0.3 to 0.4 (range), on-demand" in result.details
    result = key_result(beside(**{paid: none, listed: ratio}), "Cost per million tokens")
    assert (result.title, result.text) == ("Cost per million tokens, list price", "48 % of the GPU")
    assert key_result(beside(), "Cost per million requests").text == "0.31 USD"
    assert "no ratio: not comparable: price basis (on-demand against spot)" in key_result(
        beside(tokens_per_second=none), "Tokens per second"
    ).details  # fmt: skip


def test_first_screen_has_saving_break_even_contract_and_runs() -> None:
    assert re.fullmatch(r"[\d,]+ USD", key_result(WHOLE, "Saving").text)
    assert re.fullmatch(
        r"[\d,]+ to [\d,]+, by the intervals of both throughputs", key_result(WHOLE, "Saving").details[0]
    )
    assert key_result(WHOLE, "Break-even").text.startswith("after ")
    assert key_result(WHOLE, "Contract").text == "6 of 6 open"
    failed = replace(GOOD, runs=(*GOOD.runs, RecordedRun(job="lm-9", excluded="the job did not succeed: exit code 1")))
    runs = key_result(evidence(failed), "Runs")
    assert (runs.text, runs.details) == ("3 counted, 1 not", ("lm-9: the job did not succeed: exit code 1",))


def test_first_screen_without_records_says_what_is_missing() -> None:
    results = {result.title: result.text for result in key_results(evidence())}
    assert results == {
        "Cost per million tokens": "not measured",
        "Tokens per second": "not measured",
        "Saving in twelve months": "unknown",
        "Break-even": "unknown",
        "Contract": "6 of 6 open",
        "Runs on Trainium": "none",
    }


def test_money_comes_before_findings_in_the_code() -> None:
    assert re.findall("<h2>(.*?)</h2>", page(WHOLE))[:6] == [
        "Cost",
        "Performance",
        "Results: gates and tolerances",
        "Contract",
        "Six steps",
        "Findings in the code",
    ]
