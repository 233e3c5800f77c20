"""The prose check of `make lint`."""

import pytest

from tools.prose import findings_in


@pytest.mark.parametrize(
    "line",
    [
        "nobody asks",
        "Whoever deploys",
        "the job goes on",
        "moto knows no types",
        "such as by hand",
        "a file of its own.",
    ],
)
def test_habit_is_found_with_what_to_write(line: str) -> None:
    (found,) = findings_in(f"fine\n{line}\n", "a.py")
    assert found.startswith("a.py:2: ")
    assert ": write " in found


@pytest.mark.parametrize("line", ['user="nobody"', "NOBODY = 1", "test_nobody_is_asked", "turn it on"])
def test_names_are_not_prose(line: str) -> None:
    assert [*findings_in(line, "a.py")] == []
