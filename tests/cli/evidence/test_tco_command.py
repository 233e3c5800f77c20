"""`trn tco`: tables, records and exit codes. The arithmetic is tested in tests/core."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.core.evidence_records import GPU_SIDE, TRAINIUM_SIDE, with_hardware
from tests.core.test_tco import TRN, side, stated
from trainium_cli.exit_codes import ExitCode
from trainium_core.evidence.record import read_record, record_text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trn.json").write_text(record_text(TRN))
    (tmp_path / "gpu.json").write_text(record_text(GPU_SIDE))
    (tmp_path / "tco.toml").write_text(stated(side("trn"), side("gpu", usd_hour=50, days=0)))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_both_sides_saving_and_break_even_are_shown() -> None:
    ended = run("tco", "tco.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    shown = " ".join(ended.output.split())
    assert "trn: lm on 1 x trn2.3xlarge, side trainium" in shown
    assert "Saving of trn: $25,981.25 (" in shown
    assert "at the ends of the intervals of both throughputs)" in shown
    assert "Break-even: after 480.2 h of work" in shown
    assert "training plan, 2026-11-01" in shown


def test_records_name_the_files_that_they_are_based_on(folder: Path) -> None:
    ended = run("tco", "tco.toml", "--output", "out")
    assert ended.exit_code == ExitCode.OK, ended.output
    record = read_record((folder / "out" / f"tco-{TRAINIUM_SIDE.id}.json").read_bytes())
    assert [file.path for file in record.inputs] == ["tco.toml", "trn.json", "gpu.json"]
    assert record.kind == "tco"
    printed = json.loads(run("tco", "tco.toml", "--json").stdout)
    assert [printed_record["side"] for printed_record in printed["records"]] == ["trainium", "gpu"]


def test_unknown_total_exits_with_unknown(folder: Path) -> None:
    text = (folder / "tco.toml").read_text()
    (folder / "tco.toml").write_text(text.replace("idle_share", "# idle_share", 1))
    ended = run("tco", "tco.toml")
    assert ended.exit_code == ExitCode.UNKNOWN
    assert "idle_share is not stated" in ended.output


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tco.toml", "work = 1", "tco.toml has 2 mistakes:"),
        ("trn.json", '{"schema": ', "trn.json: not a results file: it is not JSON, or was truncated"),
        ("trn.json", record_text(replace(TRN, kind="tco")), "is a results file of kind tco"),
    ],
)
def test_invalid_file_is_named(file: str, content: str, message: str, folder: Path) -> None:
    (folder / file).write_text(content)
    ended = run("tco", "tco.toml")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert message in " ".join(ended.stderr.split())


def test_plan_of_the_file_is_priced(folder: Path) -> None:
    text = (folder / "tco.toml").read_text()
    (folder / "tco.toml").write_text(text.replace('"trn.json"', '"trn.json"\nplan = "cdk.json"'))
    context = {"trn:instance_type": "trn2.3xlarge", "trn:region": "sa-east-1", "trn:nodes": 1}
    (folder / "cdk.json").write_text(json.dumps({"context": context}))
    ended = run("tco", "tco.toml", "--offline")
    assert ended.exit_code == ExitCode.UNKNOWN, ended.output
    assert "S3 storage" in ended.output


def test_missing_file_is_bad_input() -> None:
    assert run("tco", "nothing.toml").exit_code == ExitCode.BAD_INPUT


def test_example_of_the_guide_is_computed(folder: Path) -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "tco.md"
    (example,) = re.findall(r"^```toml\n(.*?)^```", guide.read_text(), flags=re.MULTILINE | re.DOTALL)
    (folder / "tco.toml").write_text(example.replace('"trn2.json"', '"trn.json"').replace('"p5.json"', '"gpu.json"'))
    priced = with_hardware(GPU_SIDE, usd_hour=6.88)
    (folder / "gpu.json").write_text(record_text(priced))
    ended = run("tco", "tco.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "Break-even: after" in ended.output
