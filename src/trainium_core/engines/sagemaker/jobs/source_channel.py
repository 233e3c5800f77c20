"""The channel by which a training job is given its packed source and the program that starts it."""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import trainium_wire
from trainium_core.jobs.source_package import SourcePackage
from trainium_wire.job_keys import SOURCE_FILE

SOURCE_CHANNEL = "code"
"""Channel of the packed source and the container entry; SageMaker puts it below /opt/ml/input/data."""

ENTRY_FILE = "container_entry.py"

PLACE_FILE = "compile_cache_place.py"
"""Module that says to the entry where compiled graphs are."""

_DIGEST_CHARACTERS = 16


def channel_files(package: SourcePackage) -> Mapping[str, bytes]:
    """What the source channel holds, by name: the archive, our container entry, and what it imports."""
    return {SOURCE_FILE: package.archive, ENTRY_FILE: container_entry(), PLACE_FILE: compile_cache_place()}


def channel_digest(package: SourcePackage) -> str:
    """Begin of the SHA-256 digest of all files: names the folder, so that equal sources are uploaded once."""
    digest = hashlib.sha256()
    for name, content in channel_files(package).items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def container_entry() -> bytes:
    """The program that the container starts."""
    return Path(__file__).with_name(ENTRY_FILE).read_bytes()


def compile_cache_place() -> bytes:
    """The module that also nodes ask where compiled graphs are."""
    return (files(trainium_wire) / "cache_place.py").read_bytes()
