"""Tables of the rules and libraries of `trn assess`."""

from collections.abc import Iterator

from tools.reference.markdown import code, table, text
from trainium_core.assess.rules import LIBRARY_PREFIX, STACKS, Rule, rules


def assess_rules() -> str:
    return table(("rule", "finds", *STACKS, "source"), _rows(is_library=False))


def assess_libraries() -> str:
    return table(("library", "why", *STACKS, "source"), _rows(is_library=True))


def _rows(*, is_library: bool) -> Iterator[tuple[str, ...]]:
    for rule in rules().values():
        if rule.id.startswith(LIBRARY_PREFIX) == is_library:
            name = rule.id.removeprefix(LIBRARY_PREFIX)
            said = text(rule.why if is_library else rule.title)
            yield code(name), said, *(rule.severity[stack].name for stack in STACKS), _source(rule)


def _source(rule: Rule) -> str:
    said = f"{text(rule.source)}, {rule.date}"
    return f"[{said}]({rule.url})" if rule.url else said
