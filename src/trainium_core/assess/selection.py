"""Which findings count: the settings of `trn assess` in pyproject.toml, selected rules, and a baseline."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from trainium_core.assess.findings import Assessment, CodeFinding
from trainium_core.assess.rules import FAIL_ON, LIBRARY_PREFIX, OPTIONAL_SUFFIX, STACKS, rules

BASELINE_SCHEMA = "trainium-assess-baseline/1"
TABLE = "tool.trn.assess"
_LISTS = ("exclude", "select", "ignore")
_CHOICES = {"framework": (*STACKS, "both"), "fail-on": FAIL_ON}


class SelectionError(Exception):
    """A mistake in the settings or in a baseline."""


def project_settings(folder: Path) -> Mapping[str, Any]:
    """The table tool.trn.assess of pyproject.toml in a folder; empty if there is none.

    Raises:
        SelectionError: The file is not TOML, or a setting is wrong.
    """
    file = folder / "pyproject.toml"
    if not file.is_file():
        return {}
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SelectionError(f"{file} cannot be read: {error}") from error
    settings = _table(_table(_table(document, "tool"), "trn"), "assess")
    for key, value in settings.items():
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
                raise SelectionError(f"{file}: {TABLE}.{key} must be a list of strings")
        elif key in _CHOICES:
            if value not in _CHOICES[key]:
                raise SelectionError(f"{file}: {TABLE}.{key} must be one of {', '.join(_CHOICES[key])}, not {value}")
        elif key != "baseline":
            allowed = ", ".join((*_LISTS, *_CHOICES, "baseline"))
            raise SelectionError(f"{file}: {TABLE} has no setting {key}; allowed: {allowed}")
        elif not isinstance(value, str):
            raise SelectionError(f"{file}: {TABLE}.baseline must be the name of a file")
    return settings


def _table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def named_rules(names: Sequence[str]) -> frozenset[str]:
    """The IDs of rules that are named by ID, by the beginning of an ID such as C, or by the name of a library.

    Raises:
        SelectionError: A name is that of no rule.
    """
    selected = set[str]()
    for name in names:
        is_group = re.fullmatch(r"[A-Z]\d?", name) is not None
        known = [rule for rule in rules() if name in _names(rule) or (is_group and rule.startswith(name))]
        if not known:
            raise SelectionError(
                f"{name} is no rule of trn assess: use an ID such as C03, C for all of them, or a library"
            )
        selected.update(known)
    return frozenset(selected)


def _names(rule: str) -> tuple[str, str]:
    return rule, rule.removesuffix(OPTIONAL_SUFFIX).removeprefix(LIBRARY_PREFIX)


def selected(assessment: Assessment, select: Sequence[str], ignore: Sequence[str]) -> Assessment:
    """The assessment with the findings of the selected rules, by default of all, without those of ignored rules."""
    kept = (named_rules(select) if select else frozenset(rules())) - named_rules(ignore)
    findings = [finding for finding in assessment.findings if finding.rule in kept]
    return replace(assessment, findings=findings, unselected=len(assessment.findings) - len(findings))


def as_baseline(assessment: Assessment) -> str:
    """The content of a baseline with all counted findings: each by file, rule and code, with its number."""
    counts = Counter(map(_key, assessment.counted()))
    rows = [{"path": path, "rule": rule, "code": code, "count": count} for (path, rule, code), count in counts.items()]
    return json.dumps({"schema": BASELINE_SCHEMA, "findings": rows}, indent=1) + "\n"


def without_baseline(assessment: Assessment, baseline: Path) -> Assessment:
    """The assessment without the findings of a baseline, wherever in their file they are now.

    Raises:
        SelectionError: The file cannot be read, or is not a baseline.
    """
    try:
        document: Any = json.loads(baseline.read_text(encoding="utf-8"))
        if document["schema"] != BASELINE_SCHEMA:
            raise ValueError
        known = Counter({(row["path"], row["rule"], row["code"]): int(row["count"]) for row in document["findings"]})
    except OSError as error:
        raise SelectionError(f"{baseline} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SelectionError(f"{baseline} is not a baseline of trn assess; --write-baseline writes one") from error
    left, findings = Counter(known), list[CodeFinding]()
    for finding in assessment.findings:
        key = _key(finding)
        if left[key] > 0 and not finding.reason:
            left[key] -= 1
        else:
            findings.append(finding)
    return replace(assessment, findings=findings, known=len(assessment.findings) - len(findings))


def _key(finding: CodeFinding) -> tuple[str, str, str]:
    return Path(finding.path).as_posix(), finding.rule, finding.code
