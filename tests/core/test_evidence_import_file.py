"""A record from files of other tools and stated numbers."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from tests.core.test_evidence_bench import ended, record_of
from tests.core.test_evidence_imports import FILES
from trainium_core.evidence.bench import measured_run
from trainium_core.evidence.bench_file import BenchFile, read_bench_file
from trainium_core.evidence.comparability import with_missing_ratios
from trainium_core.evidence.contradictions import contradictions
from trainium_core.evidence.fidelity import with_fidelity
from trainium_core.evidence.gates import Gate
from trainium_core.evidence.import_file import imported_record
from trainium_core.evidence.record import Record, RecordError, Tool, read_record, record_text
from trainium_core.evidence.steps import training_steps
from trainium_core.evidence.toml_file import TomlFileError
from trainium_core.facts import DATA
from trainium_core.jobs.follow import LogLine

GUIDE = Path(__file__).parents[2] / "docs/guides/bench.md"
(EXAMPLE,) = re.findall('```toml\n(id = "lm-h100".*?)```', GUIDE.read_text(), re.DOTALL)
(OTHER_SIDE,) = re.findall('```toml\n(name = "lm".*?)```', GUIDE.read_text(), re.DOTALL)
RESULTS = 'results = ["run-1.json", "run-2.json", "run-3.json"]\n'
WITH_RESULTS = RESULTS + EXAMPLE.partition("[[runs]]")[0]


def imported(folder: Path, text: str = WITH_RESULTS) -> Record:
    for run in (1, 2, 3):
        (folder / f"run-{run}.json").write_text((FILES / "guidellm.json").read_text() + run * "\n")
    return imported_record(text.encode(), folder / "gpu.toml", made="2026-11-24T12:00:00Z", tool=Tool(version="1"))


def test_example_of_the_guide_is_a_record(tmp_path: Path) -> None:
    record = imported(tmp_path)
    assert read_record(record_text(record)) == record
    validate(json.loads(record_text(record)), json.loads((DATA / "evidence/record.schema.json").read_text()))
    rate, cost = (record.metrics[name] for name in ("tokens_per_second", "usd_per_million_tokens_paid"))
    assert (rate.value, rate.origin, rate.source, rate.date) == (
        118000,
        "quoted",
        "run 4711 of our tracker",
        "2026-10-20",
    )
    assert cost.value == pytest.approx(60 / 3600 / 118000 * 1e6)
    assert cost.low == pytest.approx(60 / 3600 / 121000 * 1e6)
    assert cost.source == "run 4711 of our tracker; price: finance, sheet 12"
    assert record.metrics["usd_per_million_tokens_list"].value == pytest.approx(80 / 3600 / 118000 * 1e6)
    requests = record.metrics["requests_per_second"]
    assert (requests.origin, requests.n) == ("imported", 3)
    assert record.metrics["usd_per_million_requests_paid"].value is not None
    assert [file.path for file in record.inputs] == ["gpu.toml", "run-1.json", "run-2.json", "run-3.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('source = "run 4711 of our tracker"', ""), "a quoted number needs source and date"),
        (('id = "lm-h100"', ""), "id is missing"),
        (('id = "lm-h100"', 'id = "../lm"'), "id is '../lm'; it must be up to 100 letters"),
        (('side = "gpu"', 'side = "trainium"'), "which is not of this side"),
        ((', "run-3.json"', ""), "results has 2 files; it needs one for each of at least 3 runs"),
        (('"run-3.json"', '"absent.json"'), "results: absent.json: "),
        (('"run-3.json"', "3"), "it must be a list of paths"),
        (('"run-2.json"', '"./run-1.json"'), "results: ./run-1.json equals run-1.json"),
        (("", ""), "results has 3 files, and runs has 1 run: "),
        (('id = "lm-h100"', 'id = "lm-h100"\ngates = []'), "gates is not a known key"),
        (("warmup_steps = 5", "warmup_steps = 0"), "workload.warmup_steps is 0; it must be a whole number above 0"),
        (("warmup_steps = 5", 'warmup_steps = 5\nwarmup = "x"'), "workload has warmup_steps and warmup"),
        (("usd_hour = 60.0", "usd_hour = 0"), "hardware.usd_hour is 0; it must be a number above 0"),
        (("list_usd_hour = 80.0", "list_usd_hour = -1"), "hardware.list_usd_hour is -1; it must be a number above 0"),
        (('price_source = "finance, sheet 12"', ""), "hardware.price_source is missing"),
        (
            ('unit = "tokens/s"', 'unit = "tokens/s"\norigin = "measured"'),
            "metrics.tokens_per_second.origin is 'measured'",
        ),
        (("value = 118000.0\nlow = 115000.0", "value = 0.0\nlow = 0.0"), "a rate must be above 0"),
        (("nodes = 1", "nodez = 1"), "hardware.nodez is not part of"),
        (("id =", "id"), "the file is not TOML"),
        (("seed = 1", ""), "runs[0].seed is missing"),
        (("seed = 1", "seed = 1\njob = 'x'"), "runs[0].job is not a known key"),
        (("[100, 5.841]", "[100, nan]"), "it must be a list of pairs of a step and its loss"),
        (("[100, 5.841]", "[1, 5.841]"), "each step once"),
        (("[100, 5.841]", "[100]"), "a list of pairs"),
        (("[[runs]]", "[runs]"), "it must be a list of tables"),
        (("[[runs]]", "[[runs]]\nseed = 1\nloss = [[1, 2.0]]\n[[runs]]"), "two runs have the same seed"),
        (
            ("[[runs]]", "[[runs]]\nseed = 2\nloss = [[1, 6.912], [100, 5.841], [205, 5.377]]\n[[runs]]"),
            "two runs have the same loss",
        ),
    ],
)
def test_mistake_in_the_file_is_named(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(TomlFileError, match=re.escape(message)):
        imported(tmp_path, (RESULTS + EXAMPLE).replace(*change))


@pytest.mark.parametrize("low", ["0.0", "-1.0"])
def test_throughput_that_may_be_0_gives_a_cost_without_an_interval(low: str, tmp_path: Path) -> None:
    record = imported(tmp_path, EXAMPLE.replace("low = 115000.0", f"low = {low}\nlevel = 0.95"))
    cost = record.metrics["usd_per_million_tokens_paid"]
    assert (cost.low, cost.high, cost.why_null) == (None, None, "the interval of tokens_per_second reaches 0")
    assert cost.value == pytest.approx(60 / 3600 / 118000 * 1e6)


def measured_side(folder: Path, text: str = OTHER_SIDE) -> tuple[BenchFile, Record]:
    """The file of the guide, and the record of `trn bench` of its Trainium side."""
    for name in ("trainium.toml", "gpu.toml", "gpu/cdk.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    file = read_bench_file(text.encode(), folder / "bench.toml")
    lines = [f"TRN step={step} loss={7 - step / 100} tokens=8192 seconds=0.1" for step in range(1, 300)]
    steps = training_steps([LogLine(attempt=1, rank=0, text=line) for line in lines])
    runs = [measured_run(ended(), steps, file, seed) for seed in file.seeds]
    return file, record_of(file, runs)


def test_example_of_the_guide_is_comparable_with_the_side_of_its_file(tmp_path: Path) -> None:
    _, side = measured_side(tmp_path)
    completed, _ = with_missing_ratios([side, imported(tmp_path, EXAMPLE)])
    (compared,) = completed.comparable
    assert compared.verdict == "comparable"
    assert compared.ratios["tokens_per_second"].value == pytest.approx(81920 / 118000)
    list_cost = compared.ratios["usd_per_million_tokens_list"]
    assert list_cost.value == pytest.approx(7.2 / 81920 / (80 / 118000))
    paid = compared.ratios["usd_per_million_tokens_paid"]
    assert paid.why_null == "not comparable: price basis (on-demand against on premises)"


def with_reference(folder: Path, losses: str, **workload: Any) -> tuple[BenchFile, Record]:
    """The file of the guide with an imported reference that has these losses for each seed."""
    runs = "".join(f"[[runs]]\nseed = {seed}\nloss = {losses.replace('SEED', str(seed))}\n" for seed in (1, 2, 3))
    reference = imported(folder, EXAMPLE.partition("[[runs]]")[0] + runs)
    reference = replace(reference, workload=replace(reference.workload, **workload))
    (folder / "lm-h100.json").write_text(record_text(reference))
    text = OTHER_SIDE.replace('reference = "gpu"', 'reference = "lm-h100.json"')
    return measured_side(folder, text)


@pytest.mark.parametrize(
    ("losses", "state"),
    [
        ("[[1, 6.99], [105, 5.95SEED], [205, 4.95SEED]]", "met"),
        ("[[1, 6.99], [105, 5.95SEED], [205, 4.SEED]]", "not met"),
    ],
)
def test_imported_losses_are_a_reference(losses: str, state: str, tmp_path: Path) -> None:
    file, side = with_reference(tmp_path, losses)
    (compared,) = with_fidelity([side], file)
    (check,) = compared.fidelity
    assert (check.reference, check.state) == ("lm-h100", state)
    assert [*contradictions([compared, read_record((tmp_path / "lm-h100.json").read_bytes())])] == []


def test_digest_of_the_file_changes_with_the_numbers_of_its_reference(tmp_path: Path) -> None:
    first, again, other = (
        with_reference(tmp_path, f"[[1, {loss}], [105, 5.9], [205, 4.9SEED]]", optimizer=name)[0].digest
        for loss, name in ((6.98, "AdamW"), (6.98, None), (6.97, "AdamW"))
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"model": "other"}, "its model is other, and that of this workload is examples/lm"),
        ({"name": "other"}, "its name is other, and that of this workload is lm"),
    ],
)
def test_reference_of_another_workload_is_refused(workload: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TomlFileError, match=re.escape(f"fidelity.reference is 'lm-h100.json'; {message}")):
        with_reference(tmp_path, "[[205, 4.9SEED]]", **workload)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("steps = 200", "steps = 401"),
            "lm-h100: the reference has a loss every 100 steps, but none between steps 205",
        ),
        (("seeds = [1, 2, 3] ", "seeds = [1, 2, 4] "), "the reference has no losses from step 6 to 205 with seed 4"),
        (("loss_limit = 0.01", "scores = { acc = 0.01 }"), "fidelity.scores: lm-h100 has no acc"),
    ],
)
def test_reference_without_what_is_compared_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with_reference(tmp_path, "[[105, 5.95], [205, 4.9SEED]]")
    text = OTHER_SIDE.replace('reference = "gpu"', 'reference = "lm-h100.json"')
    with pytest.raises(TomlFileError, match=re.escape(message)):
        measured_side(tmp_path, text.replace(*change))


def test_reference_whose_id_is_a_path_is_refused(tmp_path: Path) -> None:
    with_reference(tmp_path, "[[105, 5.95], [205, 4.9SEED]]")
    reference = tmp_path / "lm-h100.json"
    reference.write_text(reference.read_text().replace('"id": "lm-h100"', '"id": "../lm"'))
    text = OTHER_SIDE.replace('reference = "gpu"', 'reference = "lm-h100.json"')
    with pytest.raises(TomlFileError, match=re.escape("its id is '../lm', which is not the name of a file")):
        measured_side(tmp_path, text)


def test_reference_that_is_no_record_is_refused(tmp_path: Path) -> None:
    text = OTHER_SIDE.replace('reference = "gpu"', 'reference = "absent.json"')
    with pytest.raises(TomlFileError, match=re.escape("fidelity.reference is 'absent.json': ")):
        measured_side(tmp_path, text)


def test_quoted_number_meets_no_gate(tmp_path: Path) -> None:
    values: dict[str, Any] = vars(imported(tmp_path))
    gate = Gate(name="tokens_per_second", limit=">= 5", value=118000.0, state="met")
    with pytest.raises(RecordError, match="its metric is quoted, not measured"):
        Record(**{**values, "gates": (gate,)})
