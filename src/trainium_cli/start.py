"""The entry point of `trn`. It is installed without the extra `cli`, so it imports no library."""

import sys
from importlib.util import find_spec

LIBRARIES = ("boto3", "click", "jmespath", "rich")
"""The libraries of the extra `cli`."""


def main() -> None:
    """Run `trn`. Without its extra, print how to install it, and exit with 3."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        print(
            f"trn: {', '.join(missing)} not installed. Install the command line with: pip install 'trainium-cdk[cli]'",
            file=sys.stderr,
        )
        sys.exit(3)
    from trainium_cli.main import main as run

    run()
