from pathlib import Path

import pytest

from tests.verdicts import Verdicts


def no_judge() -> None:
    raise AssertionError


def test_a_verdict_is_the_same_in_a_later_run(tmp_path: Path) -> None:
    assert Verdicts(tmp_path).of(lambda: ["E1"], "lint 1.0", "text") == ["E1"]
    assert Verdicts(tmp_path).of(no_judge, "lint 1.0", "text") == ["E1"]


@pytest.mark.parametrize("given", [("lint 1.1", "text"), ("lint 1.0", "another text"), ("lint 1.0text",)])
def test_another_text_or_tool_has_a_verdict_of_its_own(tmp_path: Path, given: tuple[str, ...]) -> None:
    Verdicts(tmp_path).of(lambda: [], "lint 1.0", "text")
    assert Verdicts(tmp_path).of(lambda: ["E1"], *given) == ["E1"]


def test_a_torn_verdict_is_made_again(tmp_path: Path) -> None:
    Verdicts(tmp_path).of(lambda: ["E1"], "lint 1.0", "text")
    (file,) = tmp_path.iterdir()
    file.write_text("[")
    assert Verdicts(tmp_path).of(lambda: ["E1"], "lint 1.0", "text") == ["E1"]


def test_a_linter_that_fails_leaves_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Verdicts(tmp_path).of(no_judge, "lint 1.0", "text")
    assert list(tmp_path.iterdir()) == []
