"""The environment of a handler in Lambda: CloudFormation's listener on a real socket, and moto in place of AWS."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from tests.runtime.handlers.fleet import BUCKET, GROUP, NOON, STACK_ID, Clock, Context, Fleet, Lambda, Stack, client
from trainium_runtime.controller import reading
from trainium_runtime.controller.controller import ClusterController
from trainium_runtime.controller.settings import ControllerSettings
from trainium_runtime.handlers import controller, fleet_readiness

REGION = "us-west-2"


@dataclass(kw_only=True)
class CloudFormation:
    """CloudFormation, which waits for a response at a pre-signed URL.

    Attributes:
        url: The pre-signed URL.
        bodies: The bodies of the requests to the URL.
    """

    url: str
    bodies: list[bytes] = field(default_factory=list[bytes])

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
            "StackId": STACK_ID,
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
    for module in (controller, fleet_readiness):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def functions() -> Lambda:
    return Lambda()


@pytest.fixture
def stack() -> Stack:
    return Stack()


@pytest.fixture
def consoles() -> dict[str, str]:
    """The console output of instances, by instance ID."""
    return {}


@pytest.fixture
def clients(
    fleet: Fleet, functions: Lambda, stack: Stack, consoles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The clients of the functions by service, which tests may replace. They are moto's, with what moto lacks."""
    made: dict[str, Any] = {
        **{service: client(service) for service in ("s3", "sns")},
        "lambda": functions,
        "cloudformation": stack,
        "ec2": PartialClient(client("ec2"), get_console_output=Consoles(consoles).get_console_output),
        "autoscaling": PartialClient(
            client("autoscaling"),
            describe_auto_scaling_groups=fleet.describe,
            describe_scaling_activities=lambda **_: {"Activities": fleet.activities},
            set_desired_capacity=fleet.resize,
        ),
    }
    monkeypatch.setattr(boto3, "client", lambda service: made[service])
    reading.environment_store.cache_clear()
    return made


SETTINGS = {
    "CLUSTER": "trn-pilot",
    "STACK_ID": STACK_ID,
    "GROUP": GROUP,
    "RECORDS_BUCKET": BUCKET,
    "REPLACEMENTS": "0",
}


@pytest.fixture
def deploy(
    fleet: Fleet,
    clock: Clock,
    stack: Stack,
    cloudformation: CloudFormation,
    clients: dict[str, Any],  # noqa: ARG001
) -> Run:
    """Runs the function for the readiness of the fleet, by default at the creation of both nodes. Returns the event.

    Keyword arguments are properties of the resource; those of `settings` are settings of the controller.
    """
    stack.status = "UPDATE_IN_PROGRESS"

    def run(
        event: dict[str, Any] | None = None,
        request_type: str = "Create",
        settings: dict[str, str] | None = None,
        **properties: str,
    ) -> dict[str, Any]:
        defaults = {
            "Nodes": "2",
            "LaunchTemplateId": fleet.template,
            "LaunchTemplateVersion": "1",
            "SubnetId": fleet.subnet,
            "TimeoutMinutes": "30",
            "Settings": {**SETTINGS, **(settings or {})},
        }
        physical_id = None if request_type == "Create" else f"{GROUP}/readiness"
        event = event or cloudformation.event(request_type, defaults | properties, physical_id)
        controller.handle(event, Context(clock))
        return event

    return run


Look = Callable[..., None]


@pytest.fixture
def look(fleet: Fleet, clients: dict[str, Any]) -> Look:  # noqa: ARG001
    """Has the controller look at the cluster, at a number of hours after noon.

    Keyword arguments are settings of the controller; None removes one.
    """

    def run(hours: float = 0, event: dict[str, Any] | None = None, **settings: str | None) -> None:
        variables = {name: value for name, value in {**SETTINGS, **settings}.items() if value is not None}
        found = ControllerSettings.from_variables(variables)
        store = reading.environment_store(found.records_bucket)
        looks = ClusterController(found, lambda service: clients[service], store)
        looks.look(event or {}, now=NOON + timedelta(hours=hours))

    return run


Inbox = Callable[[], list[dict[str, str]]]


@pytest.fixture
def queue() -> str:
    return client("sqs").create_queue(QueueName="notices")["QueueUrl"]


@pytest.fixture
def inbox(queue: str) -> Inbox:
    """Receives the notices."""

    def messages() -> list[dict[str, str]]:
        found = client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"]) for message in found]

    return messages


@pytest.fixture
def pilot(queue: str) -> dict[str, str]:  # noqa: ARG001
    """The settings of a pilot, whose topic sends to the queue."""
    topic: str = client("sns").create_topic(Name="notices")["TopicArn"]
    client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:123456789012:notices")
    return {"TOPIC": topic, "NODES": "2", "ASLEEP": "false", "WARNING_HOURS": "24"}


@pytest.fixture
def run(look: Look, pilot: dict[str, str]) -> Look:
    """Has the controller look at a pilot."""
    return lambda hours, event=None, **settings: look(hours, event, **{**pilot, **settings})


@pytest.fixture
def deploy_pilot(deploy: Run, pilot: dict[str, str], fleet: Fleet) -> Run:
    """Deploys the pilot, whose nodes are verified."""
    fleet.verify(*fleet.instances)
    return lambda **settings: deploy(request_type="Update", settings={**pilot, **settings})
