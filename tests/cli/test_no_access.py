"""Without AWS, or without a permission, commands print the reason and a remedy in one sentence, and no table."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.cli.running import GOOD, run_program
from trainium_cli.exit_codes import ExitCode
from trainium_runtime.errors import BE_ALLOWED, REACH_AWS, SIGN_IN, SIGN_IN_OR_ENABLE

COMMANDS = (
    "audit",
    "cache status",
    "capacity",
    "cost --no-cost-explorer",
    "destroy --yes",
    "jobs",
    "list --all-regions",
    "nodes",
    "preflight",
    "quota status",
    "sleep --yes",
    "status",
)
WITH_MANY_REQUESTS = ("capacity", "preflight")
_IDENTITY = (
    "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/somebody</Arn>"
    "<UserId>AIDAEXAMPLE</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
)


class _Refusing(BaseHTTPRequestHandler):
    """Refuses requests with one error code, in the format of each protocol.

    If the code is AccessDenied, GetCallerIdentity succeeds.
    """

    code = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if b"GetCallerIdentity" in body and self.code == "AccessDenied":
            self._answer(200, _IDENTITY)
        elif b"Action=" in body and b"Version=2016-11-15" in body:
            self._answer(403, f"<Response><Errors><Error><Code>{self.code}</Code></Error></Errors></Response>")
        elif b"Action=" in body:
            self._answer(403, f"<ErrorResponse><Error><Code>{self.code}</Code></Error></ErrorResponse>")
        else:
            self._answer(400, f'{{"__type": "{self.code}"}}')

    def do_GET(self) -> None:
        self._answer(403, f"<Error><Code>{self.code}</Code></Error>")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.send_header("x-amzn-errortype", self.code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None: ...


@contextmanager
def refusing(code: str) -> Generator[str]:
    """The endpoint of a server that refuses requests with this code."""
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Refusing", (_Refusing,), {"code": code})) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


_UNREACHABLE = "unreachable"
_REMEDIES = {
    "AccessDenied": BE_ALLOWED,
    "ExpiredToken": SIGN_IN,
    "InvalidClientTokenId": SIGN_IN_OR_ENABLE,
    _UNREACHABLE: REACH_AWS,
}


@pytest.fixture(scope="module")
def cause(request: pytest.FixtureRequest) -> Generator[tuple[str, str]]:
    """An endpoint that gives this answer, and the expected remedy."""
    if request.param == _UNREACHABLE:
        yield "http://127.0.0.1:9", REACH_AWS
        return
    with refusing(request.param) as endpoint:
        yield endpoint, _REMEDIES[request.param]


@pytest.mark.parametrize(
    ("cause", "command"),
    [
        *(("AccessDenied", command) for command in COMMANDS),
        *((cause, command) for cause in _REMEDIES if cause != "AccessDenied" for command in WITH_MANY_REQUESTS),
    ],
    indirect=["cause"],
)
def test_command_without_access_names_reason_and_remedy(cause: tuple[str, str], command: str) -> None:
    endpoint, remedy = cause
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "x")
    context = () if command == "list --all-regions" else GOOD
    ended = run_program(*command.split(), *context, AWS_ENDPOINT_URL=endpoint, AWS_REGION="us-west-2", **keys)
    assert (ended.returncode, ended.stdout) == (ExitCode.UNKNOWN, "")
    assert ended.stderr.startswith("Unknown: ")
    assert ended.stderr.endswith(f": {remedy}\n")
    assert ended.stderr.count("\n") == 1
