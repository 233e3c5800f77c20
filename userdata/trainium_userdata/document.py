"""User data for cloud-init: one reproducible multipart MIME document."""

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
_LINE_LENGTH = 76
"""The maximum length of a base64 line (RFC 2045)."""


def cloud_config(
    lines: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    files: Mapping[str, str] | None = None,
    command: str | None = None,
) -> str:
    """A cloud-config document that writes the locations of a node to LOCATIONS_FILE.

    At every boot, cloud-init runs the script of the document again until the installation is complete. Otherwise a
    node would never report after a power failure during the installation.

    Args:
        lines: The lines of LOCATIONS_FILE. They may contain CDK tokens, because the document is not encoded.
        environment: Variables for ENVIRONMENT_FILE by name. The caller must have encoded the values in base64, with
            `Fn::Base64` if they contain CDK tokens. Default: the file is not written.
        files: The texts of further files by path. Default: none.
        command: A command, as a YAML list of words, that cloud-init runs once, after it has written the files.
            Default: none.
    """
    written = {LOCATIONS_FILE: lines, **{path: text.splitlines() for path, text in (files or {}).items()}}
    if environment:
        written[ENVIRONMENT_FILE] = [f"{name}={value}" for name, value in environment.items()]
    commands = f"runcmd:\n  - {command}\n" if command else ""
    return f"""#cloud-config
bootcmd:
  - [sh, -c, "{_INSTALL_AGAIN}"]
write_files:
{"".join(_write_file(path, content) for path, content in written.items())}{commands}"""


def _write_file(path: str, lines: Sequence[str]) -> str:
    content = textwrap.indent("\n".join(lines), " " * 6)
    return f"""  - path: {path}
    permissions: "0644"
    content: |
{content}
"""


def user_data(config: str, script: str | None = None) -> str:
    """A document with a plain cloud-config part and an optional compressed script.

    Args:
        config: The result of `cloud_config`.
        script: A script without CDK tokens. Default: the document has no script.
    """
    return f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="{BOUNDARY}"

--{BOUNDARY}
Content-Type: text/cloud-config; charset="utf-8"

{config}
{"" if script is None else _script_part(script)}--{BOUNDARY}--
"""


def _script_part(script: str) -> str:
    packed = base64.b64encode(_compressed(script.encode())).decode()
    text = "\n".join(packed[start : start + _LINE_LENGTH] for start in range(0, len(packed), _LINE_LENGTH))
    return f"""--{BOUNDARY}
Content-Type: application/gzip
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="trn-node"

{text}
"""


def _compressed(content: bytes) -> bytes:
    """Unlike gzip.compress, this writes the same header in every version of Python."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as archive:
        archive.write(content)
    return out.getvalue()
