"""Every mutant of the lab applies to the current code."""

from tools.lab.mutants import REPOSITORY, UNCHANGED, all_mutants


def test_each_mutant_changes_a_text_that_occurs_once() -> None:
    mutants = [*all_mutants(), UNCHANGED]
    assert [one.old for one in mutants if (REPOSITORY / one.path).read_text().count(one.old) != 1] == []
