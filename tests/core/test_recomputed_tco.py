"""The range of the saving, the break-even and the throughput of twelve months are computed again from the records."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.evidence_records import GPU_SIDE, with_metric
from tests.core.test_tco import ESTIMATE, PLANNED, SOURCED, computed, side, stated
from trainium_core.evidence.contradictions import contradictions
from trainium_core.evidence.metric import Metric, unknown
from trainium_core.evidence.record import Record, Tool
from trainium_core.evidence.tco import tco_records

USES = ", ".join(
    f'"{name}" = {{ value = {use}, {SOURCED} }}'
    for name, use in (("S3 storage", 100), ("NAT gateway data", 5), ("Data to the internet", 7))
)


def year(
    trn: Record = PLANNED, gpu: Record = GPU_SIDE, *, days: float = 60, usd_hour: float = 90, work: float = 36e6
) -> tuple[Record, Record]:
    """Both records of twelve months. The lines of the first side are those of a plan."""
    text = side("trn", days=days, more=f"monthly_use = {{ {USES} }}").partition("[[sides.trn.hours]]")[0]
    costs = computed(stated(text, side("gpu", usd_hour=usd_hour), work=work), trn, gpu, estimates=(ESTIMATE, None))
    ours, theirs = tco_records(costs, made="2026-11-24T13:00:00Z", tool=Tool(version="1"), inputs=())
    return ours, theirs


def problems(*records: Record) -> Sequence[str]:
    return [*contradictions([PLANNED, GPU_SIDE, *records])]


@given(
    rate=st.floats(1e-2, 1e6),
    low=st.sampled_from([-0.5, 0.0]) | st.floats(0.01, 1),
    high=st.floats(1, 3),
    days=st.floats(0, 300),
    usd_hour=st.floats(0, 1e4),
    work=st.floats(1e3, 1e12),
)
def test_records_of_trn_tco_contradict_nothing(
    rate: float, low: float, high: float, days: float, usd_hour: float, work: float
) -> None:
    trn = with_metric(PLANNED, value=rate, low=low * rate, high=high * rate)
    assert [*contradictions([trn, GPU_SIDE, *year(trn, days=days, usd_hour=usd_hour, work=work)])] == []


def changed(record: Record, name: str, **changes: float | None) -> Record:
    return replace(record, metrics={**record.metrics, name: replace(record.metrics[name], **changes)})


RATE = "throughput: tokens_per_second"


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("break_even_hours", {"value": 1.0}, "the break-even is 1.0 h, but the lines give "),
        ("saving", {"low": 20_000.0}, "the low end of the saving is 20000.0 USD, but the lines give "),
        ("saving", {"high": 1e9}, "the high end of the saving is 1000000000.0 USD, but the lines give "),
        ("work", {"value": 1e6}, "but the lines give "),
        (RATE, {"low": 9.9}, "tokens_per_second is not that of lm-trn2: run trn tco again"),
    ],
)
def test_changed_number_of_twelve_months_is_found(name: str, change: dict[str, float], says: str) -> None:
    ours, theirs = year()
    assert problems(ours, theirs) == []
    assert says in problems(changed(ours, name, **change), theirs)[0]


@pytest.mark.parametrize("name", ["break_even_hours", "work", RATE])
def test_missing_number_of_twelve_months_is_found(name: str) -> None:
    ours, theirs = year()
    without: dict[str, Metric] = {key: metric for key, metric in ours.metrics.items() if key != name}
    assert "but the lines give" in problems(replace(ours, metrics=without), theirs)[-1]


def test_break_even_of_a_port_that_never_pays_off_is_found() -> None:
    ours, theirs = year(usd_hour=1)
    assert str(ours.metrics["break_even_hours"].why_null).startswith("never")
    even = Metric(value=5.0, unit="h", origin="derived", method="x")
    (problem,) = problems(replace(ours, metrics={**ours.metrics, "break_even_hours": even}), theirs)
    assert problem == "tco-lm-trn2: the break-even is 5.0 h, but the lines give None h"
    hidden = year()[0]
    hidden = replace(hidden, metrics={**hidden.metrics, "break_even_hours": unknown("h", "never: it does not pay")})
    assert "the break-even is None h, but the lines give" in problems(hidden, year()[1])[0]


def test_saving_without_its_range_is_found() -> None:
    ours, theirs = year()
    assert len(problems(changed(ours, "saving", low=None, high=None), theirs)) == 2


def test_twelve_months_need_the_bench_records() -> None:
    assert [*contradictions([PLANNED, *year()])] == ["tco-lm-p5 is based on lm-p5, whose results file is missing"]
