"""A code base of a few files, and the findings in it."""

from collections.abc import Mapping
from pathlib import Path

from trainium_core.assess.assessment import assess
from trainium_core.assess.findings import Assessment


def assessment_of(folder: Path, files: Mapping[str, str | bytes]) -> Assessment:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return assess([folder])


def found_in(folder: Path, source: str) -> list[tuple[str, int]]:
    """The rules that a module violates, with the lines."""
    return [(finding.rule, finding.line) for finding in assessment_of(folder, {"module.py": source}).findings]


def rules_in(folder: Path, source: str) -> set[str]:
    return {rule for rule, _ in found_in(folder, source)}
