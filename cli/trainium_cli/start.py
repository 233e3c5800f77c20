"""Where the command `trn` begins. It is installed with the constructs, which need none of its libraries."""

import sys
from importlib.util import find_spec

LIBRARIES = ("boto3", "click", "jmespath", "rich")
"""What the extra `cli` brings."""


def main() -> None:
    """Run `trn`, or say in one sentence that its extra is not installed, with exit code 3."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        print(
            f"trn: {', '.join(missing)} not installed. Install the command line with: pip install 'trainium-cdk[cli]'",
            file=sys.stderr,
        )
        sys.exit(3)
    from trainium_cli.main import main as run

    run()
