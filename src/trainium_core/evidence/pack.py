"""An evidence pack: the files of a pilot, the report, and an in-toto statement with their digests and the decision.

The digests detect changes to the pack. The pack is not signed: to rely on the digests, a reader needs the digest of the
statement from another source.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from trainium_core.evidence.decision import decide
from trainium_core.evidence.folder import CLOCK_SKEW, STATEMENT_TYPE, Evidence, read_evidence
from trainium_core.evidence.typed_json import shown
from trainium_wire.formats import moment

STATEMENT, REPORT = "statement.intoto.json", "report.html"
EVIDENCE_FOLDER = "evidence/"
PREDICATE_TYPE = "urn:trainium-cdk:pilot-report:1"


@dataclass(frozen=True, kw_only=True)
class PackStatement:
    """The statement of a pack.

    Attributes:
        subjects: Path and SHA-256 of each file.
        made: When the pack was made, as an ISO time.
        tool: The name and version of the tool.
        decision: The decision of the report.
    """

    subjects: tuple[tuple[str, str], ...]
    made: str
    tool: str
    decision: str


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def tool_name(version: str) -> str:
    """The tool in a statement."""
    return f"trainium-cdk {version}"


def pack_statement(files: Mapping[str, bytes], *, made: str, version: str, decision: str) -> bytes:
    """The in-toto statement with the digests of all other files of the pack."""
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": path, "digest": {"sha256": digest(content)}} for path, content in sorted(files.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"made": made, "tool": tool_name(version), "decision": decision},
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def read_statement(files: Mapping[str, bytes]) -> PackStatement | None:
    """The statement in the files of a pack; None if it is not one of this package."""
    try:
        document = cast("dict[str, Any]", json.loads(files.get(STATEMENT, b"")))
        if document["_type"] != STATEMENT_TYPE or document["predicateType"] != PREDICATE_TYPE:
            return None
        predicate = document["predicate"]
        return PackStatement(
            subjects=tuple((str(row["name"]), str(row["digest"]["sha256"])) for row in document["subject"]),
            made=str(predicate["made"]),
            tool=str(predicate["tool"]),
            decision=str(predicate["decision"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def pack_evidence(files: Mapping[str, bytes], made: datetime) -> Evidence:
    """The evidence in a pack that was made at a time, with the paths that it had before."""
    return read_evidence(
        {
            path.removeprefix(EVIDENCE_FOLDER): content
            for path, content in files.items()
            if path.startswith(EVIDENCE_FOLDER)
        },
        made,
    )


def pack_problems(files: Mapping[str, bytes], now: datetime) -> Iterator[str]:
    """All problems of the files of a pack. Each is a sentence without a period that names the file."""
    statement = read_statement(files)
    if statement is None:
        is_there = STATEMENT in files
        yield (
            f"{STATEMENT} is not an in-toto statement of this package, or was truncated"
            if is_there
            else (f"{STATEMENT} is missing")
        )
    else:
        yield from _file_problems(files, statement)
    made = moment(statement.made) if statement else None
    if statement is not None and (made is None or made > now + CLOCK_SKEW):
        yield f"{STATEMENT} has the time {shown(statement.made)}, which is not a time in the past"
        made = None
    evidence = pack_evidence(files, made or now)
    yield from evidence.contradictions
    yield from (f"{path} does not count: {why}" for path, why in evidence.not_read.items())
    decision = decide(evidence).verdict
    if statement is not None and decision != statement.decision:
        yield f"{STATEMENT} has the decision {statement.decision!r}, but the evidence gives {decision!r}"


def _file_problems(files: Mapping[str, bytes], statement: PackStatement) -> Iterator[str]:
    for path, times in Counter(path for path, _ in statement.subjects).items():
        if times > 1:
            yield f"{STATEMENT} lists {path} {times} times"
    listed = dict(statement.subjects)
    if REPORT not in listed:
        yield f"{STATEMENT} does not list {REPORT}"
    for path in sorted(files.keys() - listed.keys() - {STATEMENT, REPORT}):
        yield f"{path} does not belong to the pack: the statement does not list it"
    for path, wanted in sorted(listed.items()):
        if path not in files:
            yield f"{path} is missing"
        elif digest(files[path]) != wanted:
            yield f"{path} was changed: its SHA-256 is not that of the statement"
