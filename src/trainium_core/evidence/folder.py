"""The contents of a pilot's files: records, assessments, answers about the contract, and what could not be read."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, cast

from trainium_core.assess.report_formats import JSON_SCHEMA as ASSESS_SCHEMA
from trainium_core.assess.rules import STACKS, Severity
from trainium_core.evidence.contradictions import contradictions
from trainium_core.evidence.failed_jobs import JOB, RUNS, FailedJob, read_failed_jobs, read_pilot_job
from trainium_core.evidence.record import LAB, SCHEMA, TRAINIUM, Record, RecordError, read_record
from trainium_core.evidence.typed_json import shown
from trainium_core.facts import DATA
from trainium_wire.formats import moment

CONTRACT_FILE = "contract.toml"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"

CLOCK_SKEW = timedelta(minutes=5)
"""How much the clock of the machine that wrote a record may be ahead."""

_ANSWER_KEYS = ("answer", "who", "date", "document")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A rule of `trn assess` with findings.

    Attributes:
        effort: S, M or L, for one finding.
        severity: The severity by software stack.
        places: The number of findings.
    """

    rule: str
    title: str
    fix: str
    effort: str
    severity: Mapping[str, str]
    places: int

    @property
    def worst(self) -> Severity:
        return max((Severity[name] for name in self.severity.values()), default=Severity.none)


@dataclass(frozen=True, kw_only=True)
class AssessedStack:
    """A software stack of an assessment.

    Attributes:
        support: How long the stack is supported, with source and date.
        worst: The highest severity of the findings.
    """

    key: str
    title: str
    verdict: str
    support: str
    worst: str


@dataclass(frozen=True, kw_only=True)
class ObservedJob:
    """The counters of a job, compared with the findings.

    Attributes:
        side: TRAINIUM or LAB.
        rows: Pairs of a title and the rules and counters below it.
    """

    job: str
    side: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class AssessedCode:
    """The document of `trn assess --format json`.

    Attributes:
        path: Path of the document.
        files: The number of files in the code.
        not_read: The number of files and notebook cells that could not be read.
        observed: The observed job; None if the assessment was made without --observed.
    """

    path: str
    files: int
    lines: int
    stacks: tuple[AssessedStack, ...]
    kinds: tuple[Kind, ...]
    unknown_libraries: tuple[str, ...]
    not_read: int
    observed: ObservedJob | None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer to a question about the contract."""

    answer: str
    who: str
    date: str
    document: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The files of a pilot by path, and their contents.

    Attributes:
        records: Records by path, the oldest first, each once.
        assessed: Assessments of code.
        answers: Answers by the key of the question.
        not_read: Why a file that should be a record, an assessment or contract.toml does not count, by path.
        foreign: Why another JSON file is not evidence, by path. Inputs of records are not in `not_read` and `foreign`.
        contradictions: Files that do not belong together, one sentence each without a period.
        failed: Jobs of `trn bench` and `trn pilot` that failed and are in no record.
    """

    files: Mapping[str, bytes]
    records: Mapping[str, Record]
    assessed: tuple[AssessedCode, ...]
    answers: Mapping[str, Answer]
    not_read: Mapping[str, str]
    foreign: Mapping[str, str]
    contradictions: tuple[str, ...]
    failed: tuple[FailedJob, ...] = ()


def read_evidence(files: Mapping[str, bytes], now: datetime) -> Evidence:
    """Read the files. Unreadable files do not raise an error: `not_read` and `foreign` have the reasons.

    Args:
        files: The files by path.
        now: The time of the report. Records with a later time do not count.
    """
    records, assessed = dict[str, Record](), list[AssessedCode]()
    answers, not_read, foreign = dict[str, Answer](), dict[str, str](), dict[str, str]()
    failed = dict[str, FailedJob]()
    for path, content in sorted(files.items()):
        try:
            if path.endswith((RUNS, JOB)):
                failed |= {job.job: job for job in _failed_jobs(path, content)}
            elif PurePosixPath(path).name == CONTRACT_FILE:
                answers |= _answers(content)
            elif path.endswith(".json"):
                document = _document(path, content)
                if isinstance(document, Record):
                    records[path] = document
                elif document is not None:
                    assessed.append(document)
        except _ForeignError as error:
            foreign[path] = str(error)
        except RecordError as error:
            not_read[path] = str(error)
    late = {path: _late(record) for path, record in records.items() if _is_late(record, now)}
    records = {path: record for path, record in records.items() if path not in late}
    inputs = {file.sha256 for record in records.values() for file in record.inputs}

    def without_inputs(reasons: Mapping[str, str]) -> Mapping[str, str]:
        return {path: why for path, why in reasons.items() if sha256(files[path]).hexdigest() not in inputs}

    distinct, same_ids = _distinct(records)
    recorded = {run.job for record in distinct.values() for run in record.runs}
    return Evidence(
        files=files,
        records=distinct,
        assessed=tuple(assessed),
        answers=answers,
        not_read={**without_inputs(not_read), **late},
        foreign=without_inputs(foreign),
        contradictions=(*same_ids, *contradictions(distinct.values()), *_changed_inputs(files, distinct)),
        failed=tuple(job for job in failed.values() if job.job not in recorded),
    )


def _is_late(record: Record, now: datetime) -> bool:
    made = moment(record.made)
    return made is not None and made > now + CLOCK_SKEW


def _late(record: Record) -> str:
    return f"{record.id} is dated {record.made}, in the future: check the clock of the machine that wrote it"


def _failed_jobs(path: str, content: bytes) -> Sequence[FailedJob]:
    """The failed jobs in a journal of `trn bench`, or the job of a side if it failed. Raises RecordError."""
    try:
        document = json.loads(content)
        if path.endswith(JOB):
            return read_pilot_job(document, PurePosixPath(path).name.removesuffix(JOB))
        return read_failed_jobs(document)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        expected = "the output of trn jobs --json" if path.endswith(JOB) else "the runs of trn bench"
        raise RecordError(f"not {expected}: {error!r}") from error


class _ForeignError(RecordError):
    """A JSON file that this package did not write."""


def _document(path: str, content: bytes) -> Record | AssessedCode | None:
    """A record or an assessment; None for the statement of a pack. Raises RecordError."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        raw = None
    document = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    if document.get("_type") == STATEMENT_TYPE:
        return None
    if raw is not None and document.get("schema") not in (SCHEMA, ASSESS_SCHEMA):
        raise _ForeignError("its schema is neither that of a results file nor that of an assessment")
    if document.get("schema") != ASSESS_SCHEMA:
        return read_record(content)
    try:
        return _assessed(path, document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RecordError(f"not a complete document of {ASSESS_SCHEMA}: {error!r}") from error


def _assessed(path: str, document: Mapping[str, Any]) -> AssessedCode:
    stacks = {key: document["frameworks"][key] for key in STACKS if key in document["frameworks"]}
    rules = [str(finding["rule"]) for finding in document["findings"]]
    kinds = [
        Kind(
            rule=name,
            title=str(rule["title"]),
            fix=str(rule["fix"]),
            effort=str(rule["effort"]),
            severity={key: Severity[rule["severity"][key]].name for key in stacks},
            places=rules.count(name),
        )
        for name, rule in document["rules"].items()
        if name in rules
    ]
    return AssessedCode(
        path=path,
        files=int(document["files"]),
        lines=int(document["lines"]),
        stacks=tuple(
            AssessedStack(
                key=key,
                title=str(stack["title"]),
                verdict=str(stack["verdict"]),
                support=f"{stack['support']} ({stack['source']}, {stack['date']})",
                worst=next(iter(stack["kinds"]), Severity.none.name),
            )
            for key, stack in stacks.items()
        ),
        kinds=tuple(sorted(kinds, key=lambda kind: (-kind.worst, -kind.places, kind.rule))),
        unknown_libraries=tuple(map(str, document["unknown_libraries"])),
        not_read=len(document["not_read"]),
        observed=_observed(document["observed"]) if "observed" in document else None,
    )


def _observed(document: Mapping[str, Any]) -> ObservedJob:
    if document["side"] not in (TRAINIUM, LAB):
        raise ValueError(f"observed.side is {document['side']!r}, not {TRAINIUM} or {LAB}")
    seen = tuple(f"{rule}: {'; '.join(map(str, texts))}" for rule, texts in document["predicted_and_seen"].items())
    others = (
        ("predicted and not seen", "predicted_not_seen"),
        ("seen and not predicted", "seen_not_predicted"),
        ("predicted, without a counter", "not_counted"),
    )
    rows = (("predicted and seen", seen), *((title, tuple(map(str, document[key]))) for title, key in others))
    return ObservedJob(job=str(document["job"]), side=document["side"], rows=rows)


@cache
def questions() -> Mapping[str, Mapping[str, Any]]:
    """The questions about the contract, by key."""
    return tomllib.loads((DATA / "evidence" / "contract.toml").read_text(encoding="utf-8"))


def _answers(content: bytes) -> Mapping[str, Answer]:
    """The answers in contract.toml. Raises RecordError."""
    try:
        tables = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not TOML: {error}") from error
    answers = dict[str, Answer]()
    for key, table in tables.items():
        if key not in questions():
            raise RecordError(f"{shown(key)} is not one of the questions {', '.join(questions())}")
        row = cast("dict[str, Any]", table) if isinstance(table, dict) else {}
        if not row.get("answer") or not set(row) <= set(_ANSWER_KEYS):
            raise RecordError(f"{key} must be a table with answer, and may have {', '.join(_ANSWER_KEYS[1:])}")
        answers[key] = Answer(**{name: str(row.get(name, "")) for name in _ANSWER_KEYS})
    return answers


def _distinct(records: Mapping[str, Record]) -> tuple[Mapping[str, Record], Sequence[str]]:
    """Each record once, the oldest first, and a problem for each record that has the ID of another."""
    distinct, problems = dict[str, Record](), list[str]()
    for path, record in sorted(records.items(), key=lambda item: (item[1].made, item[0])):
        if record in distinct.values():
            continue
        same = next((path for path, other in distinct.items() if other.id == record.id), None)
        if same is not None:
            problems.append(f"{path} and {same} differ but have the same ID, {record.id}")
        distinct[path] = record
    return distinct, problems


def _changed_inputs(files: Mapping[str, bytes], records: Mapping[str, Record]) -> Iterator[str]:
    """A problem for each input of a record if all files with the input's name have other contents."""
    digests = dict[str, set[str]]()
    for path, content in files.items():
        digests.setdefault(PurePosixPath(path).name, set()).add(sha256(content).hexdigest())
    for path, record in records.items():
        for file in record.inputs:
            same_name = digests.get(PurePosixPath(file.path).name)
            if same_name and file.sha256 not in same_name:
                yield f"{path} is based on a different {file.path}: the file was changed, or belongs to another pilot"
