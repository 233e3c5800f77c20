"""An evidence pack: every change to it is detected and named."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.evidence_records import TRAINIUM_SIDE
from trainium_core.evidence.pack import REPORT, STATEMENT, pack_problems, statement_of
from trainium_core.evidence.record import record_text


def packed(copies: dict[str, bytes]) -> dict[str, bytes]:
    files = {**copies, REPORT: b"<p>report</p>"}
    return {**files, STATEMENT: statement_of(files, made="2026-11-24T12:00:00Z", version="1", decision="go")}


PACK = packed(
    {
        "evidence/a.json": record_text(replace(TRAINIUM_SIDE, inputs=())).encode(),
        "evidence/logs/b.log": b"step 1\nstep 2\n",
    }
)
NAMES = sorted(PACK)


def problems(files: dict[str, bytes]) -> list[str]:
    return list(pack_problems(files))


def test_unchanged_pack_has_no_problem() -> None:
    assert problems(PACK) == []


@given(name=st.sampled_from(sorted({*PACK} - {STATEMENT})), data=st.data())
def test_changed_byte_is_detected_and_named(name: str, data: st.DataObject) -> None:
    content = bytearray(PACK[name])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    assert f"{name} was changed" in " ".join(problems({**PACK, name: bytes(content)}))


@given(name=st.sampled_from(NAMES), data=st.data())
def test_truncated_file_is_detected_and_named(name: str, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, len(PACK[name]) - 2))
    assert [problem for problem in problems({**PACK, name: PACK[name][:kept]}) if problem.startswith(name)]


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_is_named(name: str) -> None:
    assert problems({path: content for path, content in PACK.items() if path != name}) == [f"{name} is missing"]


@given(path=st.text(min_size=1))
def test_foreign_file_is_named(path: str) -> None:
    foreign = f"evidence/new-{path}"
    assert f"{foreign} does not belong to the pack: the statement does not list it" in problems({**PACK, foreign: b"x"})


def test_statement_that_omits_a_file_is_detected() -> None:
    for name, problem in (
        (REPORT, "statement.intoto.json does not cover report.html"),
        ("evidence/a.json", "evidence/a.json does not belong to the pack: the statement does not list it"),
    ):
        statement = json.loads(PACK[STATEMENT])
        statement["subject"] = [subject for subject in statement["subject"] if subject["name"] != name]
        assert problems({**PACK, STATEMENT: json.dumps(statement).encode()}) == [problem]


@given(content=st.one_of(st.binary(), st.sampled_from([b"[]", b"{}", b'{"_type": 1}'])))
def test_any_content_of_the_statement_is_refused_without_an_error(content: bytes) -> None:
    assert problems({**PACK, STATEMENT: content}) != []


def test_record_of_another_pilot_is_detected_by_its_inputs() -> None:
    copies = {"evidence/a.json": record_text(TRAINIUM_SIDE).encode(), "evidence/bench.toml": b"another"}
    (problem,) = problems(packed(copies))
    assert problem.startswith("evidence/a.json is based on a different bench.toml")
