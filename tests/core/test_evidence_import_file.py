"""A record from files of other tools and stated numbers."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from tests.core.test_evidence_imports import FILES
from trainium_core.evidence.gates import Gate
from trainium_core.evidence.import_file import imported_record
from trainium_core.evidence.record import Record, RecordError, Tool, read_record, record_text
from trainium_core.evidence.toml_file import TomlFileError
from trainium_core.facts import DATA

GUIDE = Path(__file__).parents[2] / "docs/guides/bench.md"
(EXAMPLE,) = re.findall('```toml\n(id = "lm-h100".*?)```', GUIDE.read_text(), re.DOTALL)


def imported(folder: Path, text: str = EXAMPLE) -> Record:
    for run in (1, 2, 3):
        shutil.copy(FILES / "guidellm.json", folder / f"run-{run}.json")
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
    requests = record.metrics["requests_per_second"]
    assert (requests.origin, requests.n) == ("imported", 3)
    assert record.metrics["usd_per_million_requests_paid"].value is not None
    assert [file.path for file in record.inputs] == ["gpu.toml", "run-1.json", "run-2.json", "run-3.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('source = "run 4711 of our tracker"', ""), "a quoted number needs source and date"),
        (('id = "lm-h100"', ""), "id is missing"),
        (('side = "gpu"', 'side = "trainium"'), "which is not of this side"),
        ((', "run-3.json"', ""), "results has 2 files; it needs one for each of at least 3 runs"),
        (('"run-3.json"', '"absent.json"'), "results: absent.json: "),
        (('"run-3.json"', "3"), "it must be a list of paths"),
        (('id = "lm-h100"', 'id = "lm-h100"\ngates = []'), "gates is not a known key"),
        (("nodes = 1", "nodez = 1"), "hardware.nodez is not part of"),
        (("id =", "id"), "the file is not TOML"),
    ],
)
def test_mistake_in_the_file_is_named(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(TomlFileError, match=re.escape(message)):
        imported(tmp_path, EXAMPLE.replace(*change))


def test_quoted_number_meets_no_gate(tmp_path: Path) -> None:
    values: dict[str, Any] = vars(imported(tmp_path))
    gate = Gate(name="tokens_per_second", limit=">= 5", value=118000.0, state="met")
    with pytest.raises(RecordError, match="its metric is quoted, not measured"):
        Record(**{**values, "gates": (gate,)})
