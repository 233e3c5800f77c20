"""An evidence pack: changes that do not renew the statement are found, and the changed file is named."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.evidence_records import TRAINIUM_SIDE
from trainium_core.evidence.pack import REPORT, STATEMENT, pack_problems, pack_statement
from trainium_core.evidence.record import record_text

COPIES = {
    "evidence/a.json": record_text(replace(TRAINIUM_SIDE, inputs=())).encode(),
    "evidence/logs/b.log": b"step 1\nstep 2\n",
}


def packed(copies: dict[str, bytes]) -> dict[str, bytes]:
    files = {**copies, REPORT: b"<p>report</p>"}
    return {**files, STATEMENT: pack_statement(files, made="2026-11-24T12:00:00Z", version="1", decision="not yet")}


PACK = packed(COPIES)
NAMES = sorted(PACK)
NOW = datetime(2027, 1, 1, tzinfo=UTC)


def problems(files: dict[str, bytes]) -> list[str]:
    return list(pack_problems(files, NOW))


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
    assert any(problem.startswith(name) for problem in problems({**PACK, name: PACK[name][:length]}))


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_is_named(name: str) -> None:
    assert f"{name} is missing" in problems({path: content for path, content in PACK.items() if path != name})


@given(path=st.text(min_size=1))
def test_foreign_file_is_named(path: str) -> None:
    foreign = f"evidence/new-{path}"
    assert f"{foreign} does not belong to the pack: the statement does not list it" in problems({**PACK, foreign: b"x"})


def rewritten(copies: dict[str, bytes], **predicate: str) -> dict[str, bytes]:
    statement = json.loads(packed(copies)[STATEMENT])
    statement["predicate"] |= predicate
    return {**packed(copies), STATEMENT: json.dumps(statement).encode()}


def test_decision_that_the_evidence_does_not_give_is_found() -> None:
    assert problems(rewritten(COPIES, decision="go")) == [
        "statement.intoto.json has the decision 'go', but the evidence gives 'not yet'"
    ]


def test_statement_dated_in_the_future_is_found() -> None:
    statement = rewritten(COPIES, made="2031-01-01T00:00:00Z")
    message = "statement.intoto.json has the time '2031-01-01T00:00:00Z', which is not a time in the past"
    assert problems(statement) == [message]


def test_record_dated_after_its_pack_is_found() -> None:
    late = record_text(replace(TRAINIUM_SIDE, inputs=(), made="2026-11-25T12:00:00Z")).encode()
    assert any("lm-trn2 is dated" in problem for problem in problems(packed({**COPIES, "evidence/late.json": late})))


def test_record_rewritten_with_all_digests_contradicts_itself() -> None:
    missed = json.loads(COPIES["evidence/a.json"])
    missed["gates"][0]["value"] = 1.0
    copies = {**COPIES, "evidence/a.json": json.dumps(missed).encode()}
    assert any(
        "evidence/a.json" not in problem and "a.json does not count" in problem for problem in problems(packed(copies))
    )


def test_file_that_is_listed_twice_is_refused() -> None:
    statement = json.loads(PACK[STATEMENT])
    statement["subject"].append({"name": "evidence/a.json", "digest": {"sha256": "0" * 64}})
    messages = problems({**PACK, STATEMENT: json.dumps(statement).encode()})
    assert "statement.intoto.json lists evidence/a.json 2 times" in messages


def test_statement_that_leaves_out_a_file_is_found() -> None:
    statement = json.loads(PACK[STATEMENT])
    statement["subject"] = [subject for subject in statement["subject"] if subject["name"] != REPORT]
    messages = problems({**PACK, STATEMENT: json.dumps(statement).encode()})
    assert messages == ["statement.intoto.json does not list report.html"]


@given(content=st.one_of(st.binary(), st.sampled_from([b"[]", b"{}", b"1"])))
def test_any_other_statement_is_a_problem(content: bytes) -> None:
    assert problems({**PACK, STATEMENT: content}) != []


def test_statement_of_another_tool_is_named_as_such() -> None:
    statement = json.dumps({**json.loads(PACK[STATEMENT]), "predicateType": "https://slsa.dev/provenance/v1"}).encode()
    assert "statement.intoto.json is not an in-toto statement of this package, or was truncated" in problems(
        {**PACK, STATEMENT: statement}
    )


def test_record_with_another_input_is_found() -> None:
    copies = {"evidence/a.json": record_text(TRAINIUM_SIDE).encode(), "evidence/bench.toml": b"another"}
    (messages,) = problems(packed(copies))
    assert messages.startswith("a.json is based on a different bench.toml")
