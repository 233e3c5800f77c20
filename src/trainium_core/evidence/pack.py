"""An evidence pack: the files of a pilot, a manifest of their digests, the report, and an in-toto statement.

The digests detect changes to the pack. The pack is not signed: to rely on the digests, a reader needs the digest of the
statement from another source.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, cast

from trainium_core.evidence.folder import MANIFEST_SCHEMA, STATEMENT_TYPE, read_evidence

MANIFEST, STATEMENT, REPORT = "manifest.json", "statement.intoto.json", "report.html"
EVIDENCE_FOLDER = "evidence/"
PREDICATE_TYPE = "urn:trainium-cdk:pilot-report:1"

_OURS = (MANIFEST, STATEMENT, REPORT)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def pack_manifest(files: Mapping[str, bytes]) -> bytes:
    """The manifest of the evidence: SHA-256 and size of each file, by its path in the pack."""
    rows = {path: {"sha256": digest(content), "bytes": len(content)} for path, content in sorted(files.items())}
    return _json({"schema": MANIFEST_SCHEMA, "files": rows})


def pack_statement(files: Mapping[str, bytes], *, made: str, version: str, decision: str) -> bytes:
    """The in-toto statement with the digests of all other files of the pack."""
    return _json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": path, "digest": {"sha256": digest(content)}} for path, content in sorted(files.items())
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": {"made": made, "tool": f"trainium-cdk {version}", "decision": decision},
        }
    )


def pack_problems(files: Mapping[str, bytes]) -> Iterator[str]:
    """All problems of the files of a pack. Each is a sentence without a period that names the file."""
    missing = [name for name in _OURS if name not in files]
    yield from (f"{name} is missing" for name in missing)
    manifest, statement = _manifest(files.get(MANIFEST, b"")), _statement(files.get(STATEMENT, b""))
    if MANIFEST not in missing and manifest is None:
        yield f"{MANIFEST} is not a manifest of the schema {MANIFEST_SCHEMA}, or was truncated"
    if STATEMENT not in missing and statement is None:
        yield f"{STATEMENT} is not an in-toto statement of this package, or was truncated"
    listed = {**(manifest or {}), **dict.fromkeys(_OURS, ("", 0))}
    for path in sorted(files.keys() - listed.keys()):
        yield f"{path} does not belong to the pack: the manifest does not list it"
    for path, (wanted, size) in sorted((manifest or {}).items()):
        yield from _file_problems(path, files.get(path), wanted, size)
    if statement is not None and manifest is not None:
        yield from _statement_problems(files, statement, manifest)
    evidence = {path: content for path, content in files.items() if path not in _OURS}
    yield from read_evidence(evidence).contradictions


def _file_problems(path: str, content: bytes | None, wanted: str, size: int) -> Iterator[str]:
    if content is None:
        yield f"{path} is missing"
    elif len(content) < size:
        yield f"{path} was truncated: it has {len(content):,} of {size:,} bytes"
    elif digest(content) != wanted:
        yield f"{path} was changed: its SHA-256 is not that of the manifest"


def _statement_problems(
    files: Mapping[str, bytes], statement: Mapping[str, str], manifest: Mapping[str, tuple[str, int]]
) -> Iterator[str]:
    covered = {*manifest, MANIFEST, REPORT}
    for path in sorted(covered - statement.keys()):
        yield f"{STATEMENT} does not cover {path}"
    for path in sorted(statement.keys() - covered):
        yield f"{STATEMENT} covers {path}, which is not part of the pack"
    for path in (MANIFEST, REPORT):
        if path in files and path in statement and digest(files[path]) != statement[path]:
            yield f"{path} was changed: its SHA-256 is not that of the statement"
    for path, (wanted, _) in sorted(manifest.items()):
        if statement.get(path, wanted) != wanted:
            yield f"{path} has another SHA-256 in the statement than in the manifest"


def _manifest(content: bytes) -> Mapping[str, tuple[str, int]] | None:
    """Digest and size by path; None if it is not a manifest."""
    document = _object(content)
    try:
        rows = document["files"].items() if document.get("schema") == MANIFEST_SCHEMA else None
        return None if rows is None else {str(path): (str(row["sha256"]), int(row["bytes"])) for path, row in rows}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _statement(content: bytes) -> Mapping[str, str] | None:
    """Digest by path; None if it is not a statement of this package."""
    document = _object(content)
    if document.get("_type") != STATEMENT_TYPE or document.get("predicateType") != PREDICATE_TYPE:
        return None
    try:
        return {str(subject["name"]): str(subject["digest"]["sha256"]) for subject in document["subject"]}
    except (KeyError, TypeError):
        return None


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")
