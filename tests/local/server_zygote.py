"""Starts embedded AWSs for tests: it has imported what each of them imports, and forks one for each request.

One process for all workers of pytest-xdist.
A start takes seconds, nearly all of them for imports. `trn local start` itself is tried in
tests/local/test_lifecycle.py, tests/cli/local/test_local.py and by the demo.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from tests import shared
from trainium_local import __main__ as program
from trainium_local import lifecycle, server, services
from trainium_local.environment import ACCOUNT_ID, Connection
from trainium_local.server import Settings
from trainium_local.services import lambda_starter

START_SECONDS = 60.0
IMPORTED_BY_A_START = (
    "moto.moto_server.werkzeug_app",
    "trainium_local.cloudformation",
    "trainium_local.http_server",
    "trainium_local.permissions.enforcement",
    "trainium_local.request_guard",
    "trainium_local.resources",
    "trainium_local.services.schedules",
)
USED_BY_A_CLUSTER = (
    "autoscaling",
    "budgets",
    "cloudformation",
    "cloudwatch",
    "ec2",
    "ecr",
    "efs",
    "events",
    "fsx",
    "iam",
    "lambda",
    "logs",
    "resourcegroupstaggingapi",
    "s3",
    "sagemaker",
    "scheduler",
    "service-quotas",
    "sns",
    "sqs",
    "ssm",
    "stepfunctions",
    "sts",
)
WITH_MUCH_TO_LOAD = {
    "ec2": ("us-west-2", "us-east-1"),  # moto makes an application for a service from its backend in us-east-1
    "iam": ("aws",),
}
"""Backends with AWS's managed policies, and with public images."""
REPLACED_AT_THE_START = ("cloudformation",)


def start_server(folder: Path, settings: Settings, *, starts_functions_itself: bool = False) -> Connection:
    """Start a server with its state and log in a folder, where `lifecycle` has them; `lifecycle.stop` ends it.

    starts_functions_itself: by a process of its own, which tests may kill; the others share one.
    """
    log = folder / lifecycle.LOG_FILE
    given = asdict(replace(settings, log=str(log)))
    request = {
        "settings": given,
        "state": str(folder / lifecycle.STATE_FILE),
        "log": str(log),
        "alone": starts_functions_itself,
    }
    with shared.connect(["-m", __name__]) as zygote:
        zygote.sendall(json.dumps(request).encode())
        pid = int(zygote.recv(100))
    deadline = time.monotonic() + START_SECONDS
    while _runs(pid) and time.monotonic() < deadline:
        if connection := lifecycle.connection(folder):
            return connection
        time.sleep(0.02)
    raise RuntimeError(f"the embedded AWS did not start:\n{log.read_text()}")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _load_what_is_read_at_first_use() -> None:
    import boto3
    from moto.backends import get_backend
    from moto.core import routing, utils
    from moto.moto_server import werkzeug_app
    from werkzeug.exceptions import NotFound

    from trainium_local.seeds import zones

    server.share_loader()
    zones.install()
    create_backend_app = cast(Any, cache(werkzeug_app.create_backend_app))
    nobody = boto3.Session("nobody", "nothing", region_name="us-west-2")
    for service in USED_BY_A_CLUSTER:
        nobody.client(service)
        model = utils.get_service_model(service)
        with suppress(NotFound):  # moto has no router of a protocol
            routing.get_service_router(service)._get_router(str(model.protocol))
        backends = get_backend(service)[ACCOUNT_ID]  # with all regions that the service is in
        for region in WITH_MUCH_TO_LOAD.get(service, ()):
            _ = backends[region]
        if service not in REPLACED_AT_THE_START:
            create_backend_app(service)
    werkzeug_app.create_backend_app = create_backend_app
    lambda_starter.start_zygote()


def _serve(request: dict[str, Any]) -> None:
    from moto.moto_api._internal import mock_random

    mock_random.seed()  # no two servers make the same ids
    if request["alone"]:
        lambda_starter._zygote.clear()
    os.setsid()
    shared.end_with_parent()  # which ends with the run, also with one that is killed and stops no server
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for own, given in ((0, nothing), (1, log), (2, log)):
        os.dup2(given, own)
    os.chdir(Path(request["log"]).parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program.run(Settings(**request["settings"]), ready_file=Path(request["state"]))


def main() -> None:
    # moto reads its settings from the environment, some of them as it is imported.
    server._forget_the_callers_settings(region="us-west-2", port=1)  # pyright: ignore[reportPrivateUsage]
    gc.disable()  # half of the time of the imports
    for module in IMPORTED_BY_A_START:
        import_module(module)
    services.replace()
    _load_what_is_read_at_first_use()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*shared.GARBAGE_THRESHOLDS)
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the servers
    for connection in shared.requests():
        with connection, suppress(OSError, ValueError):  # of a worker that has ended meanwhile
            request = json.loads(connection.recv(1 << 16))
            pid = os.fork()
            if pid == 0:
                connection.close()
                _serve_and_exit(request)
            connection.sendall(str(pid).encode())


def _serve_and_exit(request: dict[str, Any]) -> NoReturn:
    try:
        _serve(request)
    except Exception:  # os._exit() would lose it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
