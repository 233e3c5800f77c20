"""The entry point of `trn`. It is installed even without the extra `cli`, so it checks for the libraries first."""

import os
import signal
import sys
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

LIBRARIES = ("boto3", "click", "jmespath", "pathspec", "rich")
"""The libraries of the extra `cli`."""


def main() -> None:
    """Run `trn`, or say that its extra is not installed, with exit code 3."""
    signal.signal(signal.SIGINT, _interrupted)
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        print(
            f"trn: {', '.join(missing)} not installed. Install the command line with: pip install 'trainium-cdk[cli]'",
            file=sys.stderr,
        )
        sys.exit(3)
    from trainium_cli.main import main as run

    run()


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Handles Ctrl-C until the command is imported, without a traceback."""
    os.write(2, b"\nInterrupted.\n")
    os._exit(130)
