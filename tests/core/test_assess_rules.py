"""Each rule for code matches its bad example and not its good one, and each rule has a source and a date."""

from pathlib import Path

import pytest

from trainium_core.assess import checks
from trainium_core.assess.assessment import assess
from trainium_core.assess.rules import LIBRARY_PREFIX, STACKS, CodeRule, Severity, libraries, rules, stacks

CODE_RULES = [rule for rule in rules().values() if not rule.id.startswith(LIBRARY_PREFIX)]
LIBRARY_RULES = list(libraries().optional)


def rules_of_example(folder: Path, rule: CodeRule, text: str) -> set[str]:
    (folder / rule.example_file).write_text(text.lstrip("\n"))
    return {finding.rule for finding in assess([folder]).findings}


@pytest.mark.parametrize("rule", CODE_RULES, ids=lambda rule: rule.id)
def test_bad_example_of_a_rule_is_found(rule: CodeRule, tmp_path: Path) -> None:
    assert rule.id in rules_of_example(tmp_path, rule, rule.bad)


@pytest.mark.parametrize("rule", CODE_RULES, ids=lambda rule: rule.id)
def test_good_example_of_a_rule_is_not_found(rule: CodeRule, tmp_path: Path) -> None:
    assert rule.good.strip()
    assert rule.id not in rules_of_example(tmp_path, rule, rule.good)


@pytest.mark.parametrize("rule", LIBRARY_RULES, ids=lambda rule: rule.id)
def test_library_is_found_as_import_and_as_requirement(rule: CodeRule, tmp_path: Path) -> None:
    modules = [name for name, found_rule in libraries().by_module.items() if found_rule is rule]
    names = [name for name, found_rule in libraries().by_distribution.items() if found_rule is rule]
    (tmp_path / "requirements.txt").write_text("\n".join(f"{name}==1.0" for name in names))
    (tmp_path / "code.py").write_text("\n".join(f"import {name}" for name in modules))
    findings = [finding for finding in assess([tmp_path]).findings if finding.rule == rule.id]
    assert len(findings) == len(names) + len(modules)


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_rule_has_reason_fix_effort_and_source(rule: CodeRule) -> None:
    assert all((rule.why, rule.fix, rule.source))
    assert rule.date.year >= 2026
    assert rule.effort in ("S", "M", "L")
    assert set(rule.severity) == set(STACKS)
    assert not f"{rule.why}{rule.fix}".endswith(".")


def test_covered_rules_exist() -> None:
    assert {name for rule in rules().values() for name in rule.covers} <= set(rules())


def test_checks_of_rules_exist() -> None:
    used = {match.check for rule in CODE_RULES for match in rule.matches if match.check}
    assert all(hasattr(checks, name) for name in used - {"lfs_pointer"})


def test_neutral_library_has_no_rule() -> None:
    assert libraries().neutral.isdisjoint(libraries().by_distribution)


def test_each_stack_has_support_source_and_date() -> None:
    assert list(stacks()) == list(STACKS)
    assert all(stack.support and stack.source and stack.date for stack in stacks().values())


def test_stops_is_the_highest_severity_and_each_has_a_meaning() -> None:
    assert sorted(Severity, reverse=True)[0] is Severity.stops
    assert all(severity.meaning for severity in Severity)
