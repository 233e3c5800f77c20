"""The environment of a handler in Lambda: CloudFormation's listener on a real socket, and moto in place of AWS."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from tests.runtime.handlers.fleet import BUCKET, GROUP, PREFIX, RECONCILER_ARN, Clock, Context, Fleet, Lambda, client
from trainium_runtime.handlers import fleet_readiness

REGION = "us-west-2"


@dataclass(kw_only=True)
class CloudFormation:
    """CloudFormation, which waits for a response at a pre-signed URL.

    Attributes:
        url: The pre-signed URL.
        bodies: The bodies of the requests to the URL.
        status: Status of the stack.
    """

    url: str
    bodies: list[bytes] = field(default_factory=list[bytes])
    status: str = "UPDATE_IN_PROGRESS"

    @property
    def responses(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def response(self) -> dict[str, Any]:
        (response,) = self.responses
        return response

    def event(self, request_type: str, properties: dict[str, Any], physical_id: str | None = None) -> dict[str, Any]:
        """An event as CloudFormation sends it."""
        event = {
            "RequestType": request_type,
            "ResponseURL": self.url,
            "StackId": f"arn:aws:cloudformation:{REGION}:123456789012:stack/TrnClusterStack/0",
            "RequestId": "request-1",
            "LogicalResourceId": "FleetReadiness",
            "ResourceProperties": {"ServiceToken": "arn:of:the:function", **properties},
        }
        return event | ({"PhysicalResourceId": physical_id} if physical_id else {})


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    listener = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    cloudformation = CloudFormation(url=f"http://127.0.0.1:{listener.server_port}/answer?signature=x")

    class Receive(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            cloudformation.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    listener.RequestHandlerClass = Receive
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield cloudformation
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def _moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # Takes seconds.
    with mock_aws():
        yield


class PartialClient:
    """A client whose named calls return a value, raise an error or call a function, for behaviour that moto lacks."""

    def __init__(self, client: Any, **outcomes: Any) -> None:
        self._client, self._outcomes = client, outcomes

    def __getattr__(self, name: str) -> Any:
        if name not in self._outcomes:
            return getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            outcome = self._outcomes[name]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome(**arguments) if callable(outcome) else outcome

        return call


Run = Callable[..., dict[str, Any]]


@dataclass
class Consoles:
    """EC2's console output of instances, which botocore has already decoded."""

    output: dict[str, str]

    def get_console_output(self, **parameters: Any) -> dict[str, Any]:
        assert parameters["Latest"]
        output = self.output.get(parameters["InstanceId"], "")
        if output == "denied":
            raise ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "GetConsoleOutput")
        if output == "offline":
            raise EndpointConnectionError(endpoint_url="https://ec2.us-west-2.amazonaws.com")
        return {"InstanceId": parameters["InstanceId"], "Output": output}


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(nodes=2, region=REGION)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fleet_readiness, "time", clock)
    return clock


@pytest.fixture
def functions() -> Lambda:
    return Lambda()


@pytest.fixture
def consoles() -> dict[str, str]:
    """The console output of instances, by instance ID."""
    return {}


@pytest.fixture
def gate(
    fleet: Fleet,
    clock: Clock,
    functions: Lambda,
    consoles: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    cloudformation: CloudFormation,
) -> Run:
    """Runs the handler, by default with a Create event for both nodes, and returns the event."""

    def stubbed(service: str) -> Any:
        if service == "lambda":
            return functions
        if service == "ec2":
            return PartialClient(client(service), get_console_output=Consoles(consoles).get_console_output)
        if service == "cloudformation":
            return PartialClient(
                client(service), describe_stacks=lambda **_: {"Stacks": [{"StackStatus": cloudformation.status}]}
            )
        if service == "autoscaling":
            activities = {"Activities": fleet.activities}
            return PartialClient(
                client(service),
                describe_auto_scaling_groups=fleet.describe,
                describe_scaling_activities=activities,
                set_desired_capacity=fleet.resize,
            )
        return client(service)

    monkeypatch.setattr(boto3, "client", stubbed)

    def run(event: dict[str, Any] | None = None, request_type: str = "Create", **properties: str) -> dict[str, Any]:
        defaults = {
            "GroupName": GROUP,
            "Nodes": "2",
            "LaunchTemplateId": fleet.template,
            "LaunchTemplateVersion": "1",
            "SubnetId": fleet.subnet,
            "RecordsBucket": BUCKET,
            "RecordsPrefix": PREFIX,
            "Reconciler": RECONCILER_ARN,
            "Replacements": "0",
            "TimeoutMinutes": "30",
        }
        physical_id = None if request_type == "Create" else f"{GROUP}/gate"
        event = event or cloudformation.event(request_type, defaults | properties, physical_id)
        fleet_readiness.handle(event, Context(clock))
        return event

    return run
