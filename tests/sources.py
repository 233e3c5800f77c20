"""What decides what the CDK makes of this repository's constructs, as a digest.

Imported before them: each process has what it imports from files that are as they were when the digest was made.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SYNTHESISED = (
    "constructs",
    "src/trainium_core",
    "src/trainium_runtime",
    "stacks",
    "userdata",
    "cdk.json",
    "tests/constructs/synth.py",
)
"""Folders and files of this repository that decide a synthesis by tests.constructs.synth, and no others do."""
READ_BY_THE_CDK = ("AWS_", "CDK_", "CONTEXT_OVERFLOW_LOCATION", "JSII_", "NODE_", "SOURCE_DATE_EPOCH")
"""Beginnings of variables of the environment."""


def files(names: Iterable[str], root: Path = ROOT) -> Mapping[str, Path]:
    """The files of these folders, and these files, by their paths from the root. Python's own caches are left out."""
    given = [root / name for name in names]
    found = sorted([*given, *(file for folder in given for file in folder.rglob("*"))])
    return {str(one.relative_to(root)): one for one in found if one.is_file() and "__pycache__" not in one.parts}


def digest(names: Iterable[str], root: Path = ROOT) -> str:
    """Of the path, the permissions and the content of each file."""
    told = [
        (name, file.stat().st_mode, hashlib.sha256(file.read_bytes()).hexdigest())
        for name, file in files(names, root).items()
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _written() -> str:
    """Other than it was once a file has been written that decides a synthesis."""
    found = files(SYNTHESISED).items()
    return str([(name, file.stat().st_mtime_ns, file.stat().st_size, file.stat().st_mode) for name, file in found])


_written_at_start, _digest_at_start = _written(), digest(SYNTHESISED)


def of_a_synthesis() -> str:
    """All that decides a synthesis but what it is asked for."""
    return json.dumps([str(ROOT), _digest_at_start, _installed(), _environment()])


def are_as_at_start() -> bool:
    """False once a source has been written: nobody knows then whether Python has read it before or after."""
    return _written() == _written_at_start


@cache
def _installed() -> Sequence[str]:
    """Python, every package beside it with its version, and Node.js."""
    packages = sorted(one.name for one in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    node = Path(shutil.which(os.environ.get("JSII_NODE", "node")) or "no Node.js").resolve()
    made = [str(node.stat().st_size), str(node.stat().st_mtime_ns)] if node.exists() else []
    return [sys.version, platform.platform(), *packages, str(node), *made]


def _environment() -> Mapping[str, str]:
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(READ_BY_THE_CDK)}
