"""The program of a job's pods, as a ConfigMap: one for each version of this package, for all jobs."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

ARCHIVE = "program.zip"
LARGEST_CONFIG_MAP = 1_048_576
"""Bytes of the data of a ConfigMap (Kubernetes documentation, ConfigMaps)."""

_PACKAGES = ("trn_pod", "trn_job", "trn_node", "trn_cache")
_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time in a zip file: the archive depends only on the files."""


@cache
def program_archive() -> bytes:
    """The packages that a pod runs, as a zip file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _modules():
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


def program_name() -> str:
    """The name of the ConfigMap, which changes with the program."""
    return f"trn-program-{hashlib.sha256(program_archive()).hexdigest()[:12]}"


def program_config_map(namespace: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": program_name(), "namespace": namespace},
        "immutable": True,
        "binaryData": {ARCHIVE: base64.b64encode(program_archive()).decode()},
    }


def _modules() -> Iterator[tuple[str, bytes]]:
    # As data: this layer imports no code of the node program.
    node = files("trainium_userdata") / "node"
    folders = {"trainium_wire": files("trainium_wire"), **{name: node / name for name in _PACKAGES}}
    for package, folder in folders.items():
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                yield f"{package}/{file.name}", file.read_bytes()
