"""What a person sees while a command waits for AWS."""

import io
from threading import Event

import pytest

from trainium_cli import progress_reporter
from trainium_cli import waiting as module
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.waiting import Spinner, waiting


class Terminal(io.StringIO):
    """A terminal that records when a command explains its wait."""

    def __init__(self) -> None:
        super().__init__()
        self.explained = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if "Asking AWS ..." in self.getvalue():
            self.explained.set()
        return written


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class TwoLineStream(io.StringIO):
    """A pipe that records when it receives a second line."""

    def __init__(self) -> None:
        super().__init__()
        self.two_lines = Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.getvalue().count("\n") > 1:
            self.two_lines.set()
        return written


def test_long_wait_on_terminal_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(module, "DELAY_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    with waiting("Asking AWS ..."):
        assert stderr.explained.wait(60)


def test_spinner_shows_how_long_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", clock)
    line = Spinner("Asking AWS ...")
    clock.now += 7
    assert str(line.__rich__()) == "Asking AWS ... (7 s)"
    line.show("resources: 60 of 63 done", since=clock.now - 200)
    assert str(line.__rich__()) == "resources: 60 of 63 done (3 min 20 s)"


def test_running_step_is_repeated_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = TwoLineStream()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(progress_reporter, "QUIET_SECONDS", 0)
    monkeypatch.setattr(progress_reporter, "SECONDS_A_LINE", 0.01)
    with ProgressReporter() as reporter:
        reporter.report("resources", "60 of 63 done")
        assert stderr.two_lines.wait(30)
        reporter.report("resources", "all done", ended=True)
    first, second, *_, last = stderr.getvalue().splitlines()
    assert (first, second, last) == (2 * ("  resources: 60 of 63 done (0 s)",) + ("  resources: all done",))
