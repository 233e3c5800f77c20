"""The report of a pilot: its contents, and that no text of a record becomes markup."""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.evidence_records import GPU_SIDE, LAB_SIDE, TRAINIUM_SIDE, with_metric, with_workload
from tests.core.test_tco import side, stated
from trainium_core.assess.findings import Assessment, CodeFinding
from trainium_core.assess.observed import Comparison
from trainium_core.assess.observed import as_json as observed_json
from trainium_core.assess.report_formats import as_json as assess_json
from trainium_core.assess.rules import STACKS
from trainium_core.evidence.decision import GO, decide
from trainium_core.evidence.folder import Evidence, read_evidence
from trainium_core.evidence.gates import (
    MET,
    MET_ONCE,
    NOT_MEASURED,
    NOT_MET,
    WITHIN_NOISE,
    Fidelity,
    Gate,
    judged_fidelity,
    judged_gate,
)
from trainium_core.evidence.metric import Metric, unknown
from trainium_core.evidence.record import LAB, TRAINIUM, Comparability, Record, RecordedRun, Tool, record_text
from trainium_core.evidence.report import arrange, as_html
from trainium_core.evidence.tco import tco, tco_records
from trainium_core.evidence.tco_file import read_tco_file
from trainium_core.facts import DATA

LIMITS = {MET: ">= 5", WITHIN_NOISE: ">= 9.5", NOT_MET: ">= 50"}
"""Limits of the throughput of GOOD, by the state of their gate."""


ONE_EVENT = Metric(value=1.0, unit="s", n=1, origin="measured", why_null="too few for an interval")


def gate(state: str) -> Gate:
    """A gate in the state, for GOOD."""
    if state == MET_ONCE:
        return judged_gate("recovery_seconds", "<= 1", ONE_EVENT)
    if state == NOT_MEASURED:
        return judged_gate("no_metric", "<= 1", None)
    return judged_gate("tokens_per_second", LIMITS[state], GOOD_METRIC)


def fidelity(state: str, method: str = "loss") -> Fidelity:
    value = {MET: 0.01, NOT_MET: 0.03}.get(state)
    why = None if state in (MET, NOT_MET) else "no loss"
    return judged_fidelity(method, "lm-p5", value, 0.02, compared=6, expected=6, why_null=why)


GOOD_METRIC = TRAINIUM_SIDE.metrics["tokens_per_second"]
GOOD = replace(
    TRAINIUM_SIDE,
    gates=(gate(MET),),
    fidelity=(fidelity(MET),),
    inputs=(),
    runs=tuple(
        RecordedRun(
            job=f"lm-{seed}",
            seed=seed,
            phases={"compile_cold": 30.0, "step": 60.0},
            loss=((1.0, 4.0), (2.0, 3.0)),
            step_seconds=(0.5, 0.6),
        )
        for seed in (1, 2, 3)
    ),
)
GPU = replace(GPU_SIDE, gates=(), inputs=())
LAB_RECORD = replace(LAB_SIDE, inputs=(), runs=GOOD.runs)


NOW = datetime(2027, 1, 1, tzinfo=UTC)
"""The time of the reports, after that of all records."""


def files_of(*records: Record) -> dict[str, bytes]:
    return {f"{at}-{record.id.encode('utf-8', 'replace').hex()}.json": record_text(record).encode("utf-8", "replace")
            for at, record in enumerate(records)}  # fmt: skip


def evidence(*records: Record, **files: bytes) -> Evidence:
    named = {name.replace("_", "."): content for name, content in files.items()}
    return read_evidence({**files_of(*records), **named}, NOW)


def page(files: Evidence) -> str:
    return as_html(arrange(files), version="1", made="2026-11-24")


def assessed(**more: Any) -> bytes:
    finding = CodeFinding(path="train.py", line=1, column=1, end_line=1, end_column=5, rule="C02", code="x.cuda()")
    unknown_libraries = {"odd": "train.py:1"}
    code = Assessment(files=1, lines=10, findings=[finding], unreadable=[], comments=[], unknown=unknown_libraries)
    return json.dumps({**assess_json(code, STACKS, "1"), **more}).encode()


def twelve_months() -> Sequence[Record]:
    file = read_tco_file(stated(side("trn"), side("gpu", usd_hour=50)))
    costs = tco(file, (GOOD, GPU), (None, None))
    return tuple(tco_records(costs, made="2026-11-24T13:00:00Z", tool=Tool(version="1"), inputs=()))


WHOLE = evidence(GOOD, GPU, *twelve_months(), assess_json=assessed())


def test_all_gates_met_on_trainium_is_go() -> None:
    assert decide(WHOLE).verdict == GO
    assert [step.state for step in arrange(WHOLE).steps] == [MET] * 6


def test_excluded_run_without_job_is_named_by_its_record() -> None:
    record = replace(
        GOOD,
        runs=(
            *GOOD.runs,
            RecordedRun(excluded="it was interrupted"),
            RecordedRun(job="train-1", excluded="a node failed"),
        ),
    )
    notes = arrange(evidence(record)).not_measured
    assert f"a run of {record.id} is excluded from all numbers: it was interrupted" in notes
    assert f"the run train-1 of {record.id} is excluded from all numbers: a node failed" in notes


def test_excluded_run_with_a_warning_is_listed_once() -> None:
    record = replace(
        GOOD, runs=(*GOOD.runs, RecordedRun(job="train-1", excluded="a node failed")), warnings=("it: a node failed",)
    )
    assert sum("a node failed" in note for note in arrange(evidence(record)).not_measured) == 1


MISSING = {
    "trainium": (evidence(GPU), "Nothing was measured on Trainium"),
    "gpu": (evidence(GOOD), "no results of a GPU"),
    "gates": (evidence(replace(GOOD, gates=())), "No results of Trainium have a gate"),
    "fidelity": (evidence(replace(GOOD, fidelity=())), "No results of Trainium are compared"),
    "assessment": (evidence(GOOD, GPU), "no assessment"),
    "twelve months": (evidence(GOOD, GPU), "Not computed: no results of trn tco"),
    "recovery": (WHOLE, "Not measured: no results file has a number of this kind"),
    "contract": (WHOLE, '<span class="tag amber">open</span>'),
    "everything": (evidence(), "Nothing was measured on Trainium"),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_input_is_named_in_the_report(name: str) -> None:
    files, text = MISSING[name]
    assert text in page(files)


class Parsed(HTMLParser):
    """Elements of a page, and its rows and cells of figures with the words in them, of a cell after its label."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.figures: list[tuple[str, str]] = []
        self.words: list[str] = []
        self._side: str | None = None
        self._row: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self._side, self._row = dict(attrs).get("data-side"), []
        elif tag == "td" and "data-side" in dict(attrs):
            self._side, self._row = dict(attrs)["data-side"], [f"{dict(attrs)['data-label']}:"]

    def handle_endtag(self, tag: str) -> None:
        if (tag == "tr" or (tag == "td" and self._row[:1] and self._row[0].endswith(":"))) and self._side is not None:
            self.figures.append((self._side, " ".join(self._row)))
            self._side = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        self._row.append(data)


PLAIN = Parsed(page(WHOLE))


@settings(max_examples=40)
@given(text=st.text(min_size=1), why=st.text(min_size=1))
def test_no_text_of_a_record_becomes_markup(text: str, why: str) -> None:
    odd = Metric(value=1.0, unit=text, n=3, low=1.0, high=1.0, origin="measured")
    nasty = replace(
        with_workload(GOOD, name=text, model=text),
        id=text,
        gates=(judged_gate(f"{text} ", "<= 2", odd),),
        fidelity=(replace(fidelity(MET), method=text, reference=f"{text} "),),
        metrics={**GOOD.metrics, f"{text} ": odd, "other": unknown("s", why)},
        runs=(
            RecordedRun(job=text, phases={text: 1.0}, excluded=text),
            *(RecordedRun(seed=seed, phases={text: 1.0}, loss=((1.0, 2.0), (2.0, None))) for seed in range(3)),
        ),
        warnings=(text,),
    )
    marked = Parsed(page(evidence(nasty, GPU, assess_json=assessed())))
    assert marked.tags <= PLAIN.tags | {"h3", "br", "strong"}
    assert marked.attributes <= PLAIN.attributes


def test_markup_in_names_is_shown_as_text() -> None:
    name = '<script>alert("x")</script><img src=x onerror=alert(1)>'
    shown = page(evidence(with_workload(replace(GOOD, id=name), name=name)))
    assert not Parsed(shown).tags & {"script", "img"}
    assert name in "".join(Parsed(shown).words)


def test_name_does_not_reverse_the_text_after_it() -> None:
    shown = page(evidence(with_workload(GOOD, name="trn\u202elm\u2066")))
    assert "trn\ufffdlm\ufffd" in shown
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)


def test_page_loads_nothing() -> None:
    shown = page(WHOLE)
    assert not PLAIN.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert not PLAIN.attributes & {"src", "onload", "style", "srcset"}
    assert "url(" not in shown
    assert "@import" not in shown
    assert "http" not in shown.replace("https://awsdocs", "")


USD = Metric(value=5.0, unit="USD", origin="derived", method="x")
YEAR = {"line: Engineering": USD, "total": USD}
RECORDS = st.lists(
    st.tuples(st.sampled_from([GOOD, GPU, LAB_RECORD]), st.floats(0.001, 1e9), st.booleans(), st.integers(1, 3)),
    min_size=1,
    max_size=6,
)


def varied(rows: Sequence[tuple[Record, float, bool, int]]) -> Sequence[Record]:
    return [
        replace(
            with_workload(
                with_metric(
                    replace(record, gates=GOOD.gates if gated else ()), value=value, low=value * 0.9, high=value * 1.1
                ),
                seq=seq,
            ),
            id=f"r{at}",
        )
        for at, (record, value, gated, seq) in enumerate(rows)
    ]


@settings(max_examples=40)
@given(rows=RECORDS)
def test_lab_number_is_always_marked_and_shares_no_chart(rows: list[Any]) -> None:
    records = varied(rows)
    pilot = evidence(*records)
    for hardware_kind, words in Parsed(page(pilot)).figures:
        assert (hardware_kind == LAB) == ("stand-in" in words.split(":")[0])
    lab_ids = {f"({record.id})" for record in records if record.side == LAB}
    for charts in arrange(pilot).charts.values():
        for chart in charts:
            of_lab = {any(lab_id in row[0] for lab_id in lab_ids) for row in chart.rows}
            assert of_lab in ({True}, {False})
            assert (of_lab == {True}) == ("on stand-ins" in chart.title)


@settings(max_examples=40)
@given(rows=RECORDS)
def test_only_comparable_records_share_an_axis(rows: list[Any]) -> None:
    records = varied(rows)
    seqs = {f"({record.id})": record.workload.seq for record in records}
    year = [replace(record, kind="tco", id=f"tco-{record.id}", metrics=YEAR, gates=()) for record in records]
    seqs |= {f"({record.id})": record.workload.seq for record in year}
    charts = arrange(evidence(*records, *year)).charts
    assert charts["Performance"]
    assert charts["Results"]
    for chart in (chart for section in charts.values() for chart in section):
        named = {seq for row in chart.rows for record_id, seq in seqs.items() if record_id in row[0]}
        assert len(named) <= 1


@pytest.mark.parametrize(("hardware_kind", "word"), [(TRAINIUM, "Trainium"), (LAB, "stand-in")])
def test_counters_of_an_observed_job_have_its_side(hardware_kind: str, word: str) -> None:
    comparison = Comparison(
        seen={"C02": ["aten::item on the CPU"]}, not_seen=["S03"], not_predicted=[], uncounted=["P10"]
    )
    pilot = evidence(GOOD, assess_json=assessed(observed=observed_json(comparison, "lm-1", hardware_kind)))
    rows = [" ".join(row.split()) for side, row in Parsed(page(pilot)).figures if side == hardware_kind]
    for row in (
        f"Predicted and seen {word} C02: aten::item on the CPU",
        f"Predicted and not seen {word} S03",
        f"Seen and not predicted {word} none",
        f"Predicted, without a counter {word} P10",
    ):
        assert row in rows
    assert not any("no job was observed" in line for line in arrange(pilot).not_measured)


def test_ratio_of_a_record_is_shown_with_its_interval() -> None:
    ratio = Metric(value=0.85, unit="ratio", low=0.8, high=0.9, level=0.95, method="bootstrap", origin="derived")
    ratios = {"tokens_per_second": ratio}
    compared = Comparability(against="lm-p5", equal=(), different=(), comparable=True, ratios=ratios)
    shown = " ".join(" ".join(Parsed(page(evidence(replace(GOOD, comparable=(compared,)), GPU))).words).split())
    cells = "10 9 to 11 (95%), n 3 10 9 to 11 (95%), n 3 0.85 0.8 to 0.9 (95%)"
    assert f"Ratio to lm-p5 tokens per second tokens/s {cells}" in shown


def test_answers_about_the_contract_are_shown() -> None:
    answer = b'[capacity]\nanswer = "Capacity Blocks"\nwho = "buyer"\ndate = 2026-11-20\n'
    shown = page(evidence(GOOD, contract_toml=answer))
    assert "<strong>Capacity Blocks</strong>" in shown
    assert "buyer, 2026-11-20" in shown
    assert "contract.toml" in evidence(GOOD, contract_toml=b"[capacity]\nwho = 1\n").not_read


def test_reasons_and_warnings_are_on_the_page() -> None:
    record = replace(GOOD, metrics={**GOOD.metrics, "p99": unknown("s", "300 samples")}, warnings=("clocks differ",))
    shown = page(evidence(record, LAB_RECORD))
    for text in ("300 samples", "clocks differ", "1 of 2 results files are from stand-ins"):
        assert text in shown


def test_twelve_months_show_lines_sensitivity_and_break_even() -> None:
    report = arrange(WHOLE)
    (sensitivity,) = report.charts["Cost"]
    assert sensitivity.title == "sensitivity of the saving, USD"
    assert any(row[:3] == ("trn: engineering days", "15", "60 days") for row in sensitivity.rows)
    assert "Break-even" in page(WHOLE)
    assert re.search(r"Saving of Trainium</dt><dd>[\d,]+ USD, [\d,]+ to [\d,]+ \(range\)", page(WHOLE))


def test_gate_within_the_noise_is_shown() -> None:
    assert "met, within the noise" in page(evidence(replace(GOOD, gates=(gate(WITHIN_NOISE),))))


@given(names=st.sets(st.sampled_from(["total", "saving", "break_even_hours", "line: a", "swing: d: low", "swing: x"])))
def test_incomplete_record_of_twelve_months_is_shown(names: set[str]) -> None:
    record = replace(GOOD, kind="tco", metrics=dict.fromkeys(names, USD), gates=())
    assert "Twelve months" in page(evidence(record))


def test_contract_of_the_guide_is_read() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "report.md").read_text()
    (example,) = re.findall(r"^```toml\n(.*?)^```", guide, flags=re.MULTILINE | re.DOTALL)
    pilot = evidence(contract_toml=example.encode())
    assert set(pilot.answers) == {"capacity", "exit"}
    assert all(f"`{key}`" in guide for key in tomllib.loads((DATA / "evidence" / "contract.toml").read_text()))
