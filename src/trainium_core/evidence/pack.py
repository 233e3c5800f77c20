"""An evidence pack: the files of a pilot, its report, and an in-toto statement with their digests.

The digests detect changes to the pack. Without a signature, a reader needs the digest of the statement from another
source to rely on them.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from trainium_core.evidence.folder import STATEMENT_TYPE, read_evidence

STATEMENT, REPORT = "statement.intoto.json", "report.html"
EVIDENCE_FOLDER = "evidence/"
PREDICATE_TYPE = "urn:trainium-cdk:pilot-report:1"


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def statement_of(files: Mapping[str, bytes], *, made: str, version: str, decision: str) -> bytes:
    """The in-toto statement over the files, which are all others of the pack."""
    subjects = [{"name": path, "digest": {"sha256": digest(content)}} for path, content in sorted(files.items())]
    document = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {"made": made, "tool": f"trainium-cdk {version}", "decision": decision},
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")


def pack_problems(files: Mapping[str, bytes]) -> Iterator[str]:
    """All problems of the files of a pack: one sentence each, which names the file and has no period."""
    if STATEMENT not in files:
        yield f"{STATEMENT} is missing"
        return
    digests = _digests(files[STATEMENT])
    if digests is None:
        yield f"{STATEMENT} is not an in-toto statement about a pilot, or was truncated"
        return
    if REPORT not in digests:
        yield f"{STATEMENT} does not cover {REPORT}"
    for path in sorted(files.keys() - digests.keys() - {STATEMENT, REPORT}):
        yield f"{path} does not belong to the pack: the statement does not list it"
    for path, expected in sorted(digests.items()):
        if path not in files:
            yield f"{path} is missing"
        elif digest(files[path]) != expected:
            yield f"{path} was changed: its SHA-256 is not that of the statement"
    evidence = {path: content for path, content in files.items() if path not in (STATEMENT, REPORT)}
    yield from read_evidence(evidence).contradictions


def _digests(statement: bytes) -> Mapping[str, str] | None:
    """Digest by path; None if it is not a statement of this package."""
    try:
        document: Any = json.loads(statement)
        if document["_type"] != STATEMENT_TYPE or document["predicateType"] != PREDICATE_TYPE:
            return None
        return {str(subject["name"]): str(subject["digest"]["sha256"]) for subject in document["subject"]}
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
