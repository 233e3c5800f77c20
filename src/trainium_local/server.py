"""moto's server with the replacements of the embedded AWS, on 127.0.0.1 only."""

import json
import os
import socket
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from trainium_local import CLOCK_PATH, CONSOLE_PATH, DEFAULT_REGION, access
from trainium_local.environment import ACCOUNT_ID, HOST, Connection
from trainium_local.own_paths import WsgiApp, with_own_paths

HEALTH_PATH = "/_trn_local/health"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the embedded AWS.

    Attributes:
        port: The port; 0 selects a free port.
        region: Default region.
        quotas: Applied values by quota code, which override the values of vcpu_quotas.toml.
        no_capacity: IDs of the zones without capacity.
        fail_nodes: Number of simulated nodes, from the first launch on, that report a missing device.
        stand_in_nodes: Whether to simulate the nodes.
        iam: `enforced` or `ignored`.
        log: Path of the log file, for information only.
    """

    port: int = 0
    region: str = DEFAULT_REGION
    quotas: Mapping[str, float] = field(default_factory=dict[str, float])
    no_capacity: Sequence[str] = ()
    fail_nodes: int = 0
    stand_in_nodes: bool = True
    iam: str = "ignored"
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Health(Settings):
    """The response at HEALTH_PATH: the settings and the state of the server.

    Attributes:
        version: Version of the embedded AWS.
        pid: Process ID of the server.
        account: The account ID.
        endpoint: URL of the server.
        started: Start time.
        adapters: The resource types with an adapter, see resources/types.toml.
    """

    pid: int
    account: str
    endpoint: str
    started: str
    adapters: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Health":
        """Parse a health response.

        Raises:
            ValueError: The response is not that of this version.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            fields["adapters"] = tuple(fields["adapters"])
            return cls(**fields)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not the health of an embedded AWS: {error!r}") from error


def serve(settings: Settings, *, ready: Callable[[Health, Connection], None]) -> None:
    """Serve until the process ends.

    Args:
        settings: The settings.
        ready: Is called when the server accepts connections.

    Raises:
        OSError: The port cannot be used.
    """
    listener = socket.create_server((HOST, settings.port))
    port = listener.getsockname()[1]
    _replace_caller_settings(region=settings.region, port=port)
    connection = Connection(endpoint=f"http://{HOST}:{port}", region=settings.region, credentials=access.make_owner())
    application, health = _application(settings, connection)

    from trainium_local import http_server
    from trainium_local.request_guard import guarded
    from trainium_local.resources import callbacks
    from trainium_local.services.lambda_process import forget_code

    server = http_server.Server(listener, guarded(application, port=port, has_token=callbacks.is_open))
    ready(health, connection)
    threading.Thread(target=_load_facts, args=(settings.region,), daemon=True).start()
    try:
        server.serve_forever()
    finally:
        forget_code()  # before the process ends: `trn local stop` waits for its end


def _load_facts(region: str) -> None:
    """Load moto's images of a region and cfn-lint's rules, which takes two seconds, before a deployment needs them."""
    from moto.ec2 import ec2_backends

    from trainium_local.rules import lint

    _ = ec2_backends[ACCOUNT_ID][region]
    lint.load()


def _replace_caller_settings(*, region: str, port: int) -> None:
    """Replace the caller's AWS and moto settings, which could lead to AWS or change moto's account."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "MOTO_"))]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="nobody",  # not valid: child processes must not get credentials from the environment
        AWS_SECRET_ACCESS_KEY="nothing",
        AWS_DEFAULT_REGION=region,
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        NO_PROXY="*",
        no_proxy="*",
        MOTO_PORT=str(port),
        MOTO_DISABLE_GLOBAL_CORS="true",
        MOTO_IAM_LOAD_MANAGED_POLICIES="true",
    )


def _application(settings: Settings, connection: Connection) -> tuple[WsgiApp, Health]:
    """Return moto's application with all replacements, and its health. Importing moto reads the environment."""
    warnings.simplefilter("ignore")
    share_loader()
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.wrappers import Request, Response

    from trainium_local import cloudformation, resources, services, stand_ins
    from trainium_local.pcs import service as pcs_service
    from trainium_local.permissions import enforcement
    from trainium_local.resources import callbacks, registry
    from trainium_local.seeds import vcpu_quotas, zones
    from trainium_local.services import (
        batch_jobs,
        capacity_reservations,
        clock_control,
        console_output,
        eks,
        schedules,
    )

    if settings.iam == "enforced":
        enforcement.enforce()
    zones.install()
    vcpu_quotas.choose(settings.quotas)
    capacity_reservations.empty_zones(settings.no_capacity)
    services.install(endpoint=connection.endpoint)
    pcs_service.install()
    eks.install()
    batch_jobs.install()
    cloudformation.install()
    resources.install(connection)

    services_of_aws = with_retried_failures(DomainDispatcherApplication(create_backend_app))
    if settings.stand_in_nodes:
        stand_ins.install(fail_nodes=settings.fail_nodes)
    quotas = {quota.code: quota.applied for quota in vcpu_quotas.vcpu_quotas()}
    effective = replace(settings, port=int(connection.endpoint.rpartition(":")[2]), quotas=quotas)
    health = Health(
        **asdict(effective),
        pid=os.getpid(),
        account=ACCOUNT_ID,
        endpoint=connection.endpoint,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        adapters=tuple(registry.with_adapter()),
    )
    schedules.start()

    def answer_health(_request: Request) -> Response:
        return Response(health.to_json(), mimetype="application/json")

    own_paths = {
        HEALTH_PATH: answer_health,
        callbacks.PATH: callbacks.answer,
        CLOCK_PATH: clock_control.answer,
        CONSOLE_PATH: console_output.answer,
    }
    return with_own_paths(services_of_aws, own_paths), health


def share_loader() -> None:
    """Give botocore and moto one loader each: a new loader reads all models again, a tenth of a deployment's time."""
    from botocore import session as botocore_session
    from moto.core import utils as moto_utils

    modules: tuple[Any, ...] = (botocore_session, moto_utils)
    for module in modules:
        module.create_loader = cache(module.create_loader)


def with_retried_failures(application: WsgiApp) -> WsgiApp:
    """Respond to exceptions in moto, such as from concurrent changes of a dictionary, with HTTP 500, as AWS does.

    SDKs then retry; they cannot parse moto's HTML page. The log contains the traceback.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            return application(environ, start_response)
        except Exception:
            traceback.print_exc()
            start_response("500 Internal Server Error", [("Content-Length", "0")])
            return []

    return answer
