"""python3 -m trn_job LAUNCH_FILE"""

from __future__ import annotations

import sys

from trn_node.objects import Objects
from trn_node.secret_values import secret_value

from . import launch, watchdog
from .attempt import Attempt
from .store import Store

RETRIES = 3
"""Retries of each request to S3: seven seconds. Callers repeat important requests later."""


def main(arguments: list[str]) -> int:
    try:
        (path,) = arguments
        found = launch.read(path)
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"trn_job: no launch file: {error}", file=sys.stderr)
        return 2
    watchdog.start()
    return Attempt(found, Store(Objects(retries=RETRIES), found.url), secret_value).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
