"""Shell completion by click, for values that are known offline."""

from collections.abc import Sequence

import pytest
from click.shell_completion import ShellComplete

from tests.cli.running import run_program
from trainium_cli.main import trn


def offered(*words: str) -> Sequence[str]:
    """The completions of the last word."""
    completing = ShellComplete(trn, {}, "trn", "_TRN_COMPLETE")
    return [str(item.value) for item in completing.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("plan -c trn:capa", ["trn:capacity="]),
        ("plan -c trn:capacity=capacity-b", ["trn:capacity=capacity-block"]),
        ("list --region us-west", ["us-west-2"]),
        ("capacity --regions us-east-2,us-w", ["us-east-2,us-west-2"]),
        ("settings cap", ["capacity"]),
    ],
)
def test_offline_values_are_completed(line: str, values: Sequence[str]) -> None:
    assert offered(*line.split(" ")) == values


def test_installed_program_completes_in_shell() -> None:
    ended = run_program(_TRN_COMPLETE="bash_complete", COMP_WORDS="trn dep", COMP_CWORD="1")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("plain,deploy\n", "", 0)
