"""Handles Ctrl-C: the command says what is still running, and exits with 130, usually within a second."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType

from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import echo

_GRACE_SECONDS = 0.8
"""Seconds until the process is ended: a request to AWS that is in progress cannot be cancelled."""

_SHOW_CURSOR = "\x1b[?25h"
_NOTHING = "Interrupted."


class _Ending:
    timer: Timer | None = None
    """Ends the process if the command does not end soon enough."""
    is_reported = False
    """Whether a message was printed."""


_ending = _Ending()
_messages: list[str] = []


def handle_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, and end the process if that takes too long. A second one ends it at once."""
    signal.signal(signal.SIGINT, _on_interrupt)


@contextmanager
def interrupt_message(message: str) -> Generator[None]:
    """Sets the message for Ctrl-C in this block: what continues without the command, and is billed."""
    _messages.append(message)
    interrupted = False
    try:
        yield
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        if not interrupted and _ending.timer is None and message in _messages:
            _messages.remove(message)


@contextmanager
def finish_before_exit() -> Generator[None]:
    """Finishes a block after Ctrl-C, such as withdrawing a notice to nodes. Only a second Ctrl-C interrupts it."""
    if _ending.timer is not None:
        _ending.timer.cancel()
    yield


def report_interruption(message: str = "") -> str:
    """Print what continues without the command, and return it. Default: the message of the innermost block."""
    _ending.is_reported = True
    message = message or (_messages[-1] if _messages else _NOTHING)
    _messages.clear()
    echo(f"\n{message}", err=True)
    return message


def exit_immediately(code: int) -> None:
    """End the process without waiting for threads with requests in progress."""
    with suppress(OSError, RuntimeError):  # a closed pipe, or a signal during output
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _on_interrupt(_signal: int, _frame: FrameType | None) -> None:
    if _ending.timer is not None:
        _give_up()
    _ending.timer = Timer(_GRACE_SECONDS, _give_up)
    _ending.timer.daemon = True
    _ending.timer.start()
    raise KeyboardInterrupt


def _give_up() -> None:
    with suppress(OSError, RuntimeError):
        if sys.stderr.isatty():
            sys.stderr.write(_SHOW_CURSOR)
        if not _ending.is_reported:
            report_interruption()
    exit_immediately(ExitCode.INTERRUPTED)
