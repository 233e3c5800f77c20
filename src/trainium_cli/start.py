"""Where the command `trn` begins. It is installed with the constructs, which need none of its libraries."""

import os
import signal
import sys
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

LIBRARIES = ("boto3", "click", "jmespath", "rich")
"""What the extra `cli` brings."""


def main() -> None:
    """Run `trn`, or say in one sentence that its extra is not installed, with exit code 3."""
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
    """What Ctrl-C does until the command is imported: Python would show where in that it was."""
    os.write(2, b"\nInterrupted.\n")
    os._exit(130)
