"""Two commands are measured in turn, and one that fails is no measurement."""

from pathlib import Path

import pytest

from tools.bench.result import Result
from tools.bench.timing import CannotMeasureError, Command, medians, processors


def command(folder: Path, script: str) -> Command:
    return Command(words=("sh", "-c", script), folder=folder)


def test_commands_are_run_in_turn_with_one_round_more_than_is_counted(tmp_path: Path) -> None:
    medians(command(tmp_path, "printf a >> log"), command(tmp_path, "printf b >> log"), runs=2)
    assert (tmp_path / "log").read_text() == "ababab"


def test_the_slower_command_takes_longer(tmp_path: Path) -> None:
    slow, fast = medians(command(tmp_path, "sleep 0.2"), command(tmp_path, "true"), runs=1)
    assert slow > 0.2 > fast


def test_the_clock_of_processors_counts_work_and_no_waiting(tmp_path: Path) -> None:
    work = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"
    worked, waited = medians(command(tmp_path, work), command(tmp_path, "sleep 0.3"), runs=1, clock=processors)
    assert worked > waited
    assert waited < 0.3


def test_a_failing_command_is_reported_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match=r"exit code 7\nwhy"):
        medians(command(tmp_path, "echo why; exit 7"), command(tmp_path, "true"), runs=1)


@pytest.mark.parametrize(("value", "met"), [(1.2, True), (1.3, True), (1.31, False)])
def test_an_aim_is_the_most_that_a_figure_may_be(value: float, met: bool) -> None:
    assert Result(name="", value=value, aim=1.3, found="", method="").met is met
