"""The checks that every request passes before it is processed.

Web pages that the user opens, and other users of this machine, can connect to loopback.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from trainium_local import access
from trainium_local.access import CALLER, Caller
from trainium_local.environment import HOST, PROOF_HEADER, access_proof
from trainium_local.http_server import INCOMING, Incoming
from trainium_local.own_paths import WsgiApp
from trainium_local.signatures import Signature, SignedRequest, request_signature

OWN_PATHS = "/_trn_local/"
"""Paths of the embedded AWS itself. They are for the owner, except those with a token."""

Headers = list[tuple[str, str]]

_FORBIDDEN = "403 Forbidden"
_HINT = "Each start of the embedded AWS has new credentials, which `trn local -- COMMAND` passes to COMMAND."


class RefusedError(Exception):
    """The request is refused. The message is for its sender."""

    def __init__(self, status: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def guarded(application: WsgiApp, *, port: int, has_token: Callable[[str], bool]) -> WsgiApp:
    """Return `application` behind all checks.

    Args:
        application: The services.
        port: The server's port.
        has_token: Returns whether a path contains a valid token.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: Headers, *rest: Any) -> Any:
            return start_response(status, _without_cors(headers), *rest)

        incoming: Incoming = environ[INCOMING]
        path = str(environ["PATH_INFO"])
        signature = request_signature(incoming.request)
        try:
            refuse_foreign(incoming.request, path, port=port)
            if has_token(path):
                incoming.read_body()
                return application(environ, start)
            environ[CALLER] = caller = _caller(signature, incoming)
            if not path.startswith(OWN_PATHS):
                return application(environ, start)
            if not caller.is_owner:
                raise RefusedError(_FORBIDDEN, "AccessDenied", "This path is for the owner of the embedded AWS only.")
        except (RefusedError, OverflowError, ValueError) as error:
            return _refusal(error, incoming.request, signature, start)
        return _with_proof(application, environ, start)

    return answer


def refuse_foreign(request: SignedRequest, path: str, *, port: int) -> None:
    """Raise RefusedError for requests of web pages, for other host names, and for moto's own API.

    The host name distinguishes a page whose name was re-resolved to 127.0.0.1 (DNS rebinding) from a program of the
    user.
    """
    own = {f"{HOST}:{port}", f"localhost:{port}"}
    if request.headers.get("host") not in own or not request.target.startswith("/"):
        message = f"Host must be {HOST}:{port} or localhost:{port}, and the target of the request must be a path."
        raise RefusedError("421 Misdirected Request", "InvalidRequest", message)
    if request.method == "OPTIONS":
        raise RefusedError(_FORBIDDEN, "AccessForbidden", "CORSResponse: CORS is not enabled here.")
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
    if origin not in {None, *(f"http://{name}" for name in own)} or site not in ("none", "same-origin"):
        raise RefusedError(_FORBIDDEN, "AccessForbidden", "Web pages have no access to the embedded AWS.")
    if path.startswith("/moto-api"):
        raise RefusedError(_FORBIDDEN, "AccessDenied", "moto's own API is closed.")


def _caller(signature: Signature | None, incoming: Incoming) -> Caller:
    """Return the signer of the request. The body is read only if the access key is known."""
    if signature is None:
        raise RefusedError(_FORBIDDEN, "MissingAuthenticationToken", f"Missing Authentication Token. {_HINT}")
    credentials = access.user_credentials(signature.access_key_id)
    if credentials is None:
        code = "InvalidAccessKeyId" if signature.service == "s3" else "InvalidClientTokenId"
        raise RefusedError(_FORBIDDEN, code, f"The security token included in the request is invalid. {_HINT}")
    if not signature.is_valid(credentials.secret_access_key, incoming.request, incoming.read_body()):
        raise RefusedError(
            _FORBIDDEN,
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided, or it has expired.",
        )
    return access.caller(signature.access_key_id)


def _refusal(
    error: Exception, request: SignedRequest, signature: Signature | None, start: Callable[..., Any]
) -> Iterable[bytes]:
    """Return the refusal in the service's protocol, so that SDKs display the message."""
    status, code = ("400 Bad Request", "InvalidRequest")
    if isinstance(error, RefusedError):
        status, code = error.status, error.code
    elif isinstance(error, OverflowError):
        code = "EntityTooLarge"
    kind, body = "text/xml", f"<Error><Code>{code}</Code><Message>{error}</Message></Error>"
    if signature is None or "json" in request.headers.get("content-type", ""):
        kind, body = "application/json", json.dumps({"__type": code, "message": str(error)})
    elif signature.service == "ec2":
        body = f"<Response><Errors>{body}</Errors></Response>"
    elif signature.service != "s3":
        body = f"<ErrorResponse>{body}</ErrorResponse>"
    start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [] if request.method == "HEAD" else [body.encode()]


def _with_proof(application: WsgiApp, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    started: list[Any] = []
    body = b"".join(application(environ, lambda *arguments: started.extend(arguments)))
    status, headers = started[:2]
    authorization = environ.get("HTTP_AUTHORIZATION", "")
    others = [(name, value) for name, value in headers if name.lower() != "content-length"]
    proof = (PROOF_HEADER, access_proof(access.owner(), authorization, body))
    start(status, [*others, ("Content-Length", str(len(body))), proof])
    return [body]


def _without_cors(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if not name.lower().startswith("access-control-")]
