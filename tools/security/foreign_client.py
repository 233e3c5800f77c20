"""The attacks of another user of the machine: python3 foreign_client.py PORT [FOLDER PID]. Prints the successful ones
as JSON.

A standalone script with only the standard library, because that user can read neither this project nor its Python.
"""

import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

Attempt = tuple[str, Callable[[], bool]]

SCOPE = "AKIAIOSFODNN7EXAMPLE/20260101/us-west-2/{}/aws4_request"
PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": "attack", "Type": "String", "Value": "x"}}
TEMPLATE = json.dumps({"Resources": {"P": PARAMETER}})


def ask(port: int, method: str, path: str, body: str = "", service: str = "") -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    if service:
        credential = SCOPE.format(service)
        headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"
    connection.request(method, path, body, headers)
    return connection.getresponse().status < 300


def call(port: int, service: str, **parameters: str) -> bool:
    return ask(port, "POST", "/", urlencode(parameters), service)


def network(port: int) -> Iterator[Attempt]:
    stack = {"Version": "2010-05-15", "StackName": "attack", "TemplateBody": TEMPLATE}
    yield "identity", lambda: call(port, "sts", Action="GetCallerIdentity", Version="2011-06-15")
    yield "create", lambda: call(port, "cloudformation", Action="CreateStack", **stack)
    yield "object", lambda: ask(port, "GET", "/victim/image.svg")
    yield "data", lambda: ask(port, "GET", "/moto-api/data.json")
    yield "reset", lambda: ask(port, "POST", "/moto-api/reset")


def machine(port: int, folder: Path, pid: int) -> Iterator[Attempt]:
    yield "health", lambda: ask(port, "GET", "/_trn_local/health")
    yield "clock", lambda: ask(port, "PUT", "/_trn_local/clock", "2030-01-01T00:00Z")
    yield "list the state", lambda: bool(list(folder.iterdir()))
    yield "read the secret", lambda: bool((folder / "server.json").read_text())
    yield "read the log", lambda: bool((folder / "server.log").read_text())
    yield "write the state", lambda: bool((folder / "foreign_client").write_text("x"))
    yield "read the memory", lambda: Path(f"/proc/{pid}/mem").open("rb").close() is None
    yield "read the environment", lambda: bool(Path(f"/proc/{pid}/environ").read_bytes())
    yield "see its files", lambda: bool(list(Path(f"/proc/{pid}/fd").iterdir()))
    yield "signal it", lambda: os.kill(pid, 0) is None


def succeeds(attempt: Callable[[], bool]) -> bool:
    try:
        return attempt()
    except OSError:
        return False


def main() -> None:
    port = int(sys.argv[1])
    attempts = list(network(port))
    if len(sys.argv) > 2:
        attempts += machine(port, Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps([name for name, attempt in attempts if succeeds(attempt)]))


if __name__ == "__main__":
    main()
