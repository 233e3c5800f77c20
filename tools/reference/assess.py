"""Tables of the rules and libraries of `trn assess`."""

from collections.abc import Iterator

from tools.reference.markdown import code, table, text
from trainium_core.assess.rules import LIBRARY_PREFIX, STACKS, Rule, libraries, rules


def assess_rules() -> str:
    return table(("rule", "finds", *STACKS, "source"), _rows(is_library=False))


def assess_libraries() -> str:
    return table(("library", "why", *STACKS, "source"), _rows(is_library=True))


def _rows(*, is_library: bool) -> Iterator[tuple[str, ...]]:
    code_rules = [rule for rule in rules().values() if not rule.id.startswith(LIBRARY_PREFIX)]
    for rule in libraries().optional if is_library else code_rules:
        said = text(rule.why if is_library else rule.title)
        severities = (rule.severity[stack].name for stack in STACKS)
        yield code(rule.id.removeprefix(LIBRARY_PREFIX)), said, *severities, _source(rule)


def _source(rule: Rule) -> str:
    said = f"{text(rule.source)}, {rule.date}"
    return f"[{said}]({rule.url})" if rule.url else said
