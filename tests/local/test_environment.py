"""In the safe environment a command reaches only the embedded AWS, whatever the user's environment contains."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from string import ascii_letters

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.local.conftest import EmbeddedAws
from trainium_local.environment import (
    PROOF_HEADER,
    Connection,
    NotTheEmbeddedAwsError,
    refuse_unless_loopback,
    safe_environment,
    tool_folders,
)
from trainium_local.server import HEALTH_PATH
from trainium_local.signatures import SigningCredentials

ENDPOINT = "http://127.0.0.1:4599"
KEYS = SigningCredentials(access_key_id="TRNLACCESSKEYOFATEST", secret_access_key="known-to-this-test")
CONNECTION = Connection(endpoint=ENDPOINT, region="us-west-2", credentials=KEYS)
SERVICES = ("sts", "s3", "budgets")

DANGEROUS = {
    "AWS_PROFILE": "production",
    "AWS_DEFAULT_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREALREALREALREAL",
    "AWS_SECRET_ACCESS_KEY": "a-real-secret",
    "AWS_SESSION_TOKEN": "a-real-token",
    "AWS_SECURITY_TOKEN": "a-real-token",
    "AWS_ENDPOINT_URL": "https://ec2.us-west-2.amazonaws.com",
    "AWS_ENDPOINT_URL_EC2": "https://ec2.us-west-2.amazonaws.com",
    "AWS_ENDPOINT_URL_S3": "https://s3.us-west-2.amazonaws.com",
    "AWS_ENDPOINT_URL_CLOUDFORMATION": "https://cloudformation.us-west-2.amazonaws.com",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_CONFIG_FILE": "{home}/config",
    "AWS_SHARED_CREDENTIALS_FILE": "{home}/credentials",
    "AWS_ROLE_ARN": "arn:aws:iam::999999999999:role/admin",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "{home}/credentials",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/credentials",
    "AWS_REGION": "eu-west-1",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_USE_DUALSTACK_ENDPOINT": "true",
    "AWS_DATA_PATH": "{home}",
    "AWS_CA_BUNDLE": "{home}/nothing.pem",
    "HTTP_PROXY": "http://proxy.invalid:3128",
    "HTTPS_PROXY": "http://proxy.invalid:3128",
    "http_proxy": "http://proxy.invalid:3128",
    "ALL_PROXY": "http://proxy.invalid:3128",
    "NO_PROXY": "example.org",
    "no_proxy": "example.org",
}

# Resolves what boto3 would do for many environments in one process, with one import and without requests.
PROBE = f"""
import json, os, sys
from functools import cache
import botocore.session
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

botocore.session.create_loader = cache(botocore.session.create_loader)

def seen():
    session = botocore.session.Session()
    credentials = session.get_credentials()
    urls = {{session.create_client(s).meta.endpoint_url for s in {SERVICES!r}}}
    return {{
        "urls": sorted(urls),
        "key": credentials.access_key,
        "token": credentials.token,
        "proxies": get_environ_proxies({ENDPOINT!r}),
    }}

for line in sys.stdin:
    os.environ.clear()
    os.environ.update(json.loads(line))
    print(json.dumps(seen()), flush=True)
"""


@pytest.fixture(scope="module")
def resolve() -> Iterator[Callable[[dict[str, str]], dict[str, object]]]:
    """A function that returns what botocore resolves: endpoints of SERVICES, credentials, proxies for ENDPOINT."""
    with subprocess.Popen(
        [sys.executable, "-c", PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None

        def resolve(environment: dict[str, str]) -> dict[str, object]:
            assert probe.stdin is not None
            assert probe.stdout is not None
            print(json.dumps(environment), file=probe.stdin, flush=True)
            return json.loads(probe.stdout.readline())

        yield resolve
        probe.stdin.close()


@pytest.fixture(scope="module")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with credentials and a configuration for real AWS."""
    home = tmp_path_factory.mktemp("home")
    (home / ".aws").mkdir()
    secret = "[default]\naws_access_key_id = AKIAREALREALREALREAL\naws_secret_access_key = a-real-secret\n"
    config = (
        "[default]\nregion = eu-west-1\n[profile production]\nregion = eu-west-1\nendpoint_url = https://aws.invalid\n"
    )
    for folder in (home, home / ".aws"):
        (folder / "credentials").write_text(secret)
        (folder / "config").write_text(config)
    return home


@settings(max_examples=12)
@given(names=st.sets(st.sampled_from(sorted(DANGEROUS))))
def test_boto3_in_safe_environment_uses_only_the_connection(
    resolve: Callable[[dict[str, str]], dict[str, object]], real_home: Path, names: set[str]
) -> None:
    own = {"HOME": str(real_home), "PATH": os.environ["PATH"]}
    own |= {name: DANGEROUS[name].format(home=real_home) for name in names}
    safe = safe_environment(own, CONNECTION)
    assert resolve(safe) == {"urls": [ENDPOINT], "key": KEYS.access_key_id, "token": None, "proxies": {}}


def test_probe_detects_unsafe_environment(
    resolve: Callable[[dict[str, str]], dict[str, object]], real_home: Path
) -> None:
    unsafe = {"HOME": str(real_home), "PATH": os.environ["PATH"], "AWS_REGION": "us-west-2"}
    assert resolve(unsafe)["key"] == "AKIAREALREALREALREAL"


OWN_NAMES = st.builds(
    "{}_{}".format,
    st.sampled_from(
        ["".join(case) for name in ("aws", "cdk") for case in product(*zip(name, name.upper(), strict=True))]
    ),
    st.text(ascii_letters + "_", min_size=1, max_size=20),
)
"""(?i)(aws|cdk)_[a-z_]{1,20}, built without a regular expression, which is many times slower."""


@given(own=st.dictionaries(OWN_NAMES, st.text("ab", max_size=3)))
def test_aws_and_cdk_settings_of_user_are_dropped(own: dict[str, str]) -> None:
    assert safe_environment(own, CONNECTION) == safe_environment({}, CONNECTION)


def test_harmless_variables_are_kept_and_others_overridden() -> None:
    own = {"EDITOR": "vi", "no_proxy": "corp.example", "CDK": "1", "CDK_PROXY": "http://proxy.invalid", "PATH": "/bin"}
    safe = safe_environment(own, CONNECTION, tools=(Path("/p/bin"),))
    assert (safe["EDITOR"], safe["PATH"]) == ("vi", "/p/bin:/bin")
    assert safe["NO_PROXY"] == safe["no_proxy"] == "127.0.0.1,localhost,::1,corp.example"
    assert "CDK" not in safe
    assert (safe["CDK_PROXY"], safe["CDK_PROFILE"]) == ("", "")


def test_tool_folders_begin_with_pinned_cdk_cli_and_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "node_modules" / ".bin").mkdir(parents=True)
    assert tool_folders(tmp_path)[:2] == (tmp_path / "node_modules" / ".bin", Path(sys.executable).parent)
    monkeypatch.chdir(tmp_path)
    assert tool_folders() == tool_folders(tmp_path)[1:]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:4599", "http://127.9.9.9:1", "http://[::1]:80"])
def test_loopback_address_is_accepted(endpoint: str) -> None:
    refuse_unless_loopback(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://sts.amazonaws.com",
        "http://10.0.0.1:4599",
        "http://localhost:4599",
        "http://127.0.0.1.example.org",
        "http://user@example.org",
        "https://127.0.0.1:4599",
        "127.0.0.1:4599",
        "",
    ],
)
def test_non_loopback_address_is_refused(endpoint: str) -> None:
    with pytest.raises(NotTheEmbeddedAwsError):
        refuse_unless_loopback(endpoint)


def test_safe_environment_requires_loopback() -> None:
    with pytest.raises(NotTheEmbeddedAwsError):
        safe_environment({}, replace(CONNECTION, endpoint="https://sts.amazonaws.com"))


def test_embedded_aws_proves_that_it_has_the_secret(embedded_aws: EmbeddedAws) -> None:
    assert b"AWS::EC2::VPC" in embedded_aws.connection.send("GET", HEALTH_PATH)


@pytest.fixture
def impostor() -> Iterator[str]:
    """A server on loopback that answers as the embedded AWS would, but without its secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header(PROOF_HEADER, "0" * 64)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_answer_without_proof_of_secret_is_refused(impostor: str) -> None:
    with pytest.raises(NotTheEmbeddedAwsError, match="the embedded AWS that was started is no longer running"):
        replace(CONNECTION, endpoint=impostor).send("GET", HEALTH_PATH)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "https://sts.amazonaws.com"])
def test_unreachable_or_foreign_address_is_refused(endpoint: str) -> None:
    with pytest.raises(NotTheEmbeddedAwsError):
        replace(CONNECTION, endpoint=endpoint).send("GET", HEALTH_PATH)


def test_lifecycle_imports_neither_moto_nor_boto3() -> None:
    code = "import sys, trainium_local.lifecycle; sys.exit(bool({'moto', 'boto3', 'botocore'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
