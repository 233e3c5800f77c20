"""What Ctrl-C does: the command ends within a second, says what is still running, and exits with 130, as shells do."""

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
"""How long a command may take to end by itself: a question to AWS that is under way cannot be taken back."""

_SHOW_CURSOR = "\x1b[?25h"
_NOTHING = "Interrupted."


class _Ending:
    """The end that Ctrl-C has begun. timer: what ends the process if it takes too long. is_reported: a line said so."""

    timer: Timer | None = None
    is_reported = False


_ending = _Ending()
_messages: list[str] = []


def handle_interrupts() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, and ends the process if that takes too long; the second at once."""
    signal.signal(signal.SIGINT, _on_interrupt)


@contextmanager
def going_on(message: str) -> Generator[None]:
    """What is said when Ctrl-C comes in this block: what continues without the command, and is billed."""
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
def finishing() -> Generator[None]:
    """What has to be done before the end, such as withdrawing a notice to nodes; only a second Ctrl-C ends it."""
    if _ending.timer is not None:
        _ending.timer.cancel()
    yield


def go_on() -> None:
    """The command continues after Ctrl-C, such as with a question; the next one is a first one."""
    if _ending.timer is not None:
        _ending.timer.cancel()
        _ending.timer, _ending.is_reported = None, False


def tell_interrupted(message: str = "") -> str:
    """Say what continues without the command. message: default that of the innermost `going_on`. What was said."""
    _ending.is_reported = True
    said = message or (_messages[-1] if _messages else _NOTHING)
    _messages.clear()
    echo(f"\n{said}", err=True)
    return said


def end_at_once(code: int) -> None:
    """End the process without waiting for threads whose questions are under way."""
    with suppress(OSError, RuntimeError):  # a closed pipe; a signal that came in the middle of a line
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
            tell_interrupted()
    end_at_once(ExitCode.INTERRUPTED)
