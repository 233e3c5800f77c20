"""User data as cloud-init reads it: one MIME document of several parts, the same bytes every time."""

import base64
import gzip
import io
import textwrap
from collections.abc import Mapping, Sequence

BOUNDARY = "==trn-node=="
LOCATIONS_FILE = "/etc/trn/places.env"
ENVIRONMENT_FILE = "/etc/trn/environment.base64"
_INSTALL_AGAIN = (
    "cmp -s /var/lib/cloud/data/instance-id /var/lib/trn/instance-id"
    " || rm -f /var/lib/cloud/instance/sem/config_scripts_user"
)
_LINE = 76
"""RFC 2045: no line of base64 is longer."""


def cloud_config(lines: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """A cloud-config document that writes the lines to LOCATIONS_FILE. They may hold CDK tokens: it is sent as it is.

    environment: variables for ENVIRONMENT_FILE, their values in base64, because a token resolves only later.
    Default: none, and no such file.

    At every boot it has cloud-init run the script of the other part again, if the node is not installed to the end: a
    power failure during the installation would otherwise leave it silent for ever.
    """
    files = {LOCATIONS_FILE: lines}
    if environment:
        files[ENVIRONMENT_FILE] = [f"{name}={value}" for name, value in environment.items()]
    return f"""#cloud-config
bootcmd:
  - [sh, -c, "{_INSTALL_AGAIN}"]
write_files:
{"".join(_write_file(path, content) for path, content in files.items())}"""


def _write_file(path: str, lines: Sequence[str]) -> str:
    content = textwrap.indent("\n".join(lines), " " * 6)
    return f"""  - path: {path}
    permissions: "0644"
    content: |
{content}
"""


def user_data(config: str, script: str) -> str:
    """One document of a plain cloud-config part and a compressed script. A CDK token in the script would stay one."""
    packed = base64.b64encode(_compressed(script.encode())).decode()
    text = "\n".join(packed[start : start + _LINE] for start in range(0, len(packed), _LINE))
    return f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="{BOUNDARY}"

--{BOUNDARY}
Content-Type: text/cloud-config; charset="utf-8"

{config}
--{BOUNDARY}
Content-Type: application/gzip
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="trn-node"

{text}
--{BOUNDARY}--
"""


def _compressed(content: bytes) -> bytes:
    """Unlike with gzip.compress, the header is the same in every version of Python."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as archive:
        archive.write(content)
    return out.getvalue()
