"""Every change of a template in tools/mutants applies to the current templates."""

from tools.mutants.__main__ import MUTANTS, REPOSITORY, TEMPLATES


def test_each_mutant_changes_a_text_that_occurs_once() -> None:
    found = [(REPOSITORY / TEMPLATES / mutant["file"]).read_text().count(mutant["old"]) for mutant in MUTANTS]
    assert found == [1] * len(MUTANTS)


def test_each_mutant_names_an_existing_test_file() -> None:
    assert [mutant for mutant in MUTANTS if not (REPOSITORY / mutant["tests"]).is_file()] == []
