"""What every table of `trn` has in common."""

import pytest

from tests.cli.running import GOOD, run


@pytest.mark.parametrize("columns", ["60", "80", "200"])
@pytest.mark.parametrize("arguments", [("types",), ("settings",), ("plan", *GOOD), ("estimate", "--offline", *GOOD)])
def test_no_line_ends_in_spaces(monkeypatch: pytest.MonkeyPatch, columns: str, arguments: tuple[str, ...]) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(*arguments).stdout.splitlines()
    assert len(lines) > 10
    assert [line for line in lines if line != line.rstrip()] == []
