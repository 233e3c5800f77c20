"""What a person sees while AWS is asked."""

import io
import time

import pytest

from trainium_cli import waiting as module
from trainium_cli.waiting import waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, *, delay: float, takes: float) -> str:
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(module, "DELAY_SECONDS", delay)
    monkeypatch.setenv("TERM", "xterm")
    with waiting("Asking AWS ..."):
        time.sleep(takes)
    return stderr.getvalue()


def test_on_a_terminal_a_long_wait_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Asking AWS ..." in shown(monkeypatch, Terminal(), delay=0.01, takes=0.4)


def test_a_short_wait_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), delay=60, takes=0) == ""


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO(), delay=0.01, takes=0.1) == ""


def test_a_mistake_while_waiting_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    with pytest.raises(KeyError), waiting("Asking AWS ..."):
        raise KeyError
