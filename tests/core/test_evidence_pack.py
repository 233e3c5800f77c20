"""An evidence pack: changes that do not renew the statement are found, and the changed file is named."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.evidence_records import GPU_SIDE, TRAINIUM_SIDE
from trainium_core.evidence.pack import MANIFEST, REPORT, STATEMENT, pack_manifest, pack_problems, pack_statement
from trainium_core.evidence.record import record_text

COPIES = {
    "evidence/a.json": record_text(replace(TRAINIUM_SIDE, inputs=())).encode(),
    "evidence/logs/b.log": b"step 1\nstep 2\n",
}


def packed(copies: dict[str, bytes]) -> dict[str, bytes]:
    files = {**copies, MANIFEST: pack_manifest(copies), REPORT: b"<p>report</p>"}
    return {**files, STATEMENT: pack_statement(files, made="2026-11-24T12:00:00Z", version="1", decision="go")}


PACK = packed(COPIES)
NAMES = sorted(PACK)


def problems(files: dict[str, bytes]) -> list[str]:
    return list(pack_problems(files))


def test_unchanged_pack_has_no_problem() -> None:
    assert problems(PACK) == []


@given(name=st.sampled_from(sorted({*COPIES, REPORT})), data=st.data())
def test_changed_byte_of_evidence_or_report_is_found_and_named(name: str, data: st.DataObject) -> None:
    content = bytearray(PACK[name])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    assert f"{name} was changed" in " ".join(problems({**PACK, name: bytes(content)}))


@given(name=st.sampled_from(NAMES), data=st.data())
def test_truncated_file_is_found_and_named(name: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, len(PACK[name]) - 2))
    messages = [problem for problem in problems({**PACK, name: PACK[name][:length]}) if problem.startswith(name)]
    assert messages
    assert name == REPORT or "truncated" in messages[0]


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_is_named(name: str) -> None:
    assert f"{name} is missing" in problems({path: content for path, content in PACK.items() if path != name})


@given(path=st.text(min_size=1))
def test_foreign_file_is_named(path: str) -> None:
    foreign = f"evidence/new-{path}"
    assert f"{foreign} does not belong to the pack: the manifest does not list it" in problems({**PACK, foreign: b"x"})


def test_manifest_written_again_contradicts_the_statement() -> None:
    changed = {**COPIES, "evidence/a.json": record_text(replace(GPU_SIDE, inputs=())).encode()}
    messages = problems({**PACK, **changed, MANIFEST: pack_manifest(changed)})
    assert "manifest.json was changed: its SHA-256 is not that of the statement" in messages
    assert "evidence/a.json has another SHA-256 in the statement than in the manifest" in messages


def test_statement_that_leaves_out_a_file_is_found() -> None:
    statement = json.loads(PACK[STATEMENT])
    statement["subject"] = [subject for subject in statement["subject"] if subject["name"] != REPORT]
    messages = problems({**PACK, STATEMENT: json.dumps(statement).encode()})
    assert messages == ["statement.intoto.json does not cover report.html"]


@given(content=st.one_of(st.binary(), st.sampled_from([b"[]", b"{}", b'{"schema": "trainium-pack/1", "files": 1}'])))
def test_any_other_manifest_or_statement_is_a_problem(content: bytes) -> None:
    assert problems({**PACK, MANIFEST: content}) != []
    assert problems({**PACK, STATEMENT: content}) != []


def test_infinite_size_in_the_manifest_is_a_problem() -> None:
    manifest = b'{"schema": "trainium-pack/1", "files": {"evidence/a.json": {"sha256": "0", "bytes": 1e999}}}'
    assert any(
        message.startswith("manifest.json is not a manifest") for message in problems({**PACK, MANIFEST: manifest})
    )


def test_statement_of_another_tool_is_named_as_such() -> None:
    statement = json.dumps({**json.loads(PACK[STATEMENT]), "predicateType": "https://slsa.dev/provenance/v1"}).encode()
    assert "statement.intoto.json is not an in-toto statement of this package, or was truncated" in problems(
        {**PACK, STATEMENT: statement}
    )


def test_record_with_another_input_is_found() -> None:
    copies = {"evidence/a.json": record_text(TRAINIUM_SIDE).encode(), "evidence/bench.toml": b"another"}
    (messages,) = problems(packed(copies))
    assert messages.startswith("evidence/a.json is based on a different bench.toml")
