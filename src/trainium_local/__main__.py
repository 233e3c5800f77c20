"""python -m trainium_local: the embedded AWS in the foreground. `lifecycle.start` runs this in the background."""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from trainium_local.environment import Connection
from trainium_local.server import Health, Settings, serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trainium_local")
    parser.add_argument("--settings", type=json.loads, default={}, help="a JSON object with fields of Settings")
    parser.add_argument(
        "--ready-file",
        type=Path,
        required=True,
        help="file for address and credentials, written once the server answers",
    )
    options = parser.parse_args()
    run(Settings(**options.settings), ready_file=options.ready_file)


def run(settings: Settings, *, ready_file: Path) -> None:
    """Serve until a signal ends this process. Writes the address and credentials once the server answers requests."""
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(0))
    os.umask(0o077)  # files created from here on are private to the user

    def ready(health: Health, connection: Connection) -> None:
        connection.write(ready_file)
        print(f"The embedded AWS answers at {health.endpoint}, account {health.account}.", flush=True)

    try:
        serve(settings, ready=ready)
    except OSError as error:
        sys.exit(f"the embedded AWS cannot start on port {settings.port}: {error}")
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
