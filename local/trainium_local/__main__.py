"""python -m trainium_local: the embedded AWS in the foreground. `trn local start` runs this in the background."""

import argparse
import os
import signal
import sys
from pathlib import Path

from trainium_local.environment import Connection
from trainium_local.server import Health, Settings, serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trainium_local")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--region", default=Settings.region)
    parser.add_argument("--quota", action="append", default=[], metavar="CODE=VALUE")
    parser.add_argument("--fail-nodes", type=int, default=0, metavar="N")
    parser.add_argument("--no-stand-in-nodes", action="store_true", help="the nodes' records come from somewhere else")
    parser.add_argument("--iam", default=Settings.iam, choices=("enforced", "ignored"))
    parser.add_argument("--log", default="", help="the file that standard output goes to")
    parser.add_argument(
        "--ready-file", type=Path, required=True, help="where and with which credentials it answers, once it does"
    )
    given = parser.parse_args()
    quotas = {code: float(value) for code, value in (quota.split("=", 1) for quota in given.quota)}
    settings = Settings(
        port=given.port,
        region=given.region,
        quotas=quotas,
        fail_nodes=given.fail_nodes,
        stand_in_nodes=not given.no_stand_in_nodes,
        iam=given.iam,
        log=given.log,
    )
    signal.signal(signal.SIGTERM, _end)
    os.umask(0o077)  # whatever is written from now on is the user's alone

    def ready(health: Health, connection: Connection) -> None:
        connection.write(given.ready_file)
        print(f"The embedded AWS answers at {health.endpoint}, account {health.account}.", flush=True)

    try:
        serve(settings, ready=ready)
    except OSError as error:
        sys.exit(f"port {settings.port}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(0)


def _end(_signal: int, _frame: object) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
