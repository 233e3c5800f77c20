"""What a handler meets in Lambda: CloudFormation's listener on a real socket, and moto in place of AWS."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from moto import mock_aws

REGION = "us-west-2"


@dataclass(kw_only=True)
class CloudFormation:
    """The pre-signed URL that CloudFormation waits at. `bodies` is what was put there, as bytes."""

    url: str
    bodies: list[bytes] = field(default_factory=list[bytes])

    @property
    def answers(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def answer(self) -> dict[str, Any]:
        (answer,) = self.answers
        return answer

    def event(self, request_type: str, properties: dict[str, Any], physical_id: str | None = None) -> dict[str, Any]:
        """An event as CloudFormation sends it: every property is text."""
        event = {
            "RequestType": request_type,
            "ResponseURL": self.url,
            "StackId": f"arn:aws:cloudformation:{REGION}:123456789012:stack/TrnClusterStack/0",
            "RequestId": "request-1",
            "LogicalResourceId": "Gate",
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
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # takes seconds
    with mock_aws():
        yield


class Partly:
    """A client of which single calls answer as told, or raise: what moto never does."""

    def __init__(self, client: Any, **outcomes: Any) -> None:
        self._client, self._outcomes = client, outcomes

    def __getattr__(self, name: str) -> Any:
        if name not in self._outcomes:
            return getattr(self._client, name)

        def call(**_arguments: Any) -> Any:
            outcome = self._outcomes[name]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return call
