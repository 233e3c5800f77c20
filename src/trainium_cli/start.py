"""Where the command `trn` begins. It is installed with the constructs, which need none of its libraries."""

import gc
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
    # Hundreds of thousands of objects are made by imports and stay; looking for garbage among them takes a tenth of it.
    gc.set_threshold(100_000, 20, 50)
    from trainium_cli.main import main as run

    try:
        run()
    finally:
        gc.freeze()  # Python looks for garbage once more when it ends, when all memory is given back anyway


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    """What Ctrl-C does until the command is imported: Python would show where in that it was."""
    os.write(2, b"\nInterrupted.\n")
    os._exit(130)
