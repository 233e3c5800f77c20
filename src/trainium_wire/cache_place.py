"""The S3 prefixes of compile cache entries, for nodes, jobs and `trn`.

Installed unchanged on nodes: Python 3.8 or later, standard library only.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import NamedTuple

STACKS = ("native", "xla", "jax", "vllm")
"""The stacks with a compile cache."""

RELEASE_PREFIX = "neuronx-cc-"
"""Prefix of the name of every compiler release."""

SUFFIX = ".tar"
"""Suffix of an entry's object, after the name that the stack gave the entry."""

DIGEST = "sha256"
"""Name of the object metadata with the SHA-256 of the content, in hexadecimal."""

DIRECT = "direct"
"""Folder of the files that PyTorch/XLA itself writes into S3 and deletes, such as locks."""

FLAGS_IN_KEY = ("xla",)
"""Stacks that put the compiler flags into the name of an entry. For the others, the place contains their digest."""

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLACE = re.compile(
    rf"(?P<release>{_PART.pattern})/(?P<generation>[a-z]+[0-9]+)-lnc(?P<lnc>[0-9]+)/(?P<stack>[a-z]+)/"
    r"world-(?P<world>[0-9]+|any)(?:-flags-(?P<flags>[0-9a-f]{12}))?"
)
_KEY = re.compile(rf"{_PLACE.pattern}/(?P<name>[^/].*){re.escape(SUFFIX)}")

NATIVE_FOLDER, NATIVE_LOCAL_FOLDER = "TORCH_NEURONX_NEFF_CACHE_DIR", "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR"
"""Variables of native PyTorch (TorchNeuron) with the folders of compiled graphs and of locks."""
NATIVE_SETTINGS = {
    "TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS": "1",
    "TORCH_NEURONX_NEFF_CACHE_LOCK_TIMEOUT": "14400",
}
"""By default, TorchNeuron silently computes graphs on the CPU that fail to compile or to run on the device. After 20
minutes (kDefaultTimeoutSeconds in its FileLock.cpp), every process that waits for a compilation compiles as well. A
long limit costs nothing, because the kernel releases the lock of a process that ends."""


class Place(NamedTuple):
    """The inputs of a compilation that the S3 prefix of an entry contains, because its name does not.

    Attributes:
        release: Release of the compiler.
        generation: Generation of the chip, such as trn2.
        lnc: Logical NeuronCore configuration.
        stack: One of STACKS.
        world_size: Number of processes of the job; 0 if unknown.
        flags: Digest of the compiler flags, or empty.
    """

    release: str
    generation: str
    lnc: int
    stack: str
    world_size: int
    flags: str = ""

    @property
    def path(self) -> str:
        """The prefix of the entries below the cache's URL."""
        flags = f"-flags-{self.flags}" if self.flags else ""
        world = self.world_size or "any"
        return f"{self.release}/{self.generation}-lnc{self.lnc}/{self.stack}/world-{world}{flags}"

    @property
    def direct_path(self) -> str:
        """The prefix below the cache's URL that PyTorch/XLA itself writes to."""
        return f"{DIRECT}/{self.path}"

    def key(self, name: str) -> str:
        """The key of an entry's object, below the cache's URL."""
        return f"{self.path}/{name}{SUFFIX}"


class EntryKey(NamedTuple):
    """An entry: its place, and the name that the stack gave it."""

    place: Place
    name: str


def native_folders(folder: str) -> dict[str, str]:
    """The variables that make native PyTorch put compiled graphs and locks into a folder."""
    return {NATIVE_FOLDER: folder, NATIVE_LOCAL_FOLDER: f"{folder}/.local"}


def cache_entry_place(
    *, compiler: str, instance_type: str, lnc: int, stack: str, world_size: int, compiler_flags: str = ""
) -> Place:
    """The place of a job's entries.

    Args:
        compiler: Version of the compiler, such as 2.21.18209.0+043b1bf7.
        instance_type: Instance type of the nodes.
        lnc: Logical NeuronCore configuration.
        stack: One of STACKS.
        world_size: Number of processes of the job; 0 if unknown.
        compiler_flags: Value of NEURON_CC_FLAGS.

    Raises:
        ValueError: The version, the instance type or the stack is invalid.
    """
    release = RELEASE_PREFIX + compiler.strip().replace("+", "-")
    generation = re.match(r"(trn|inf)[0-9]+", instance_type)
    if not compiler.strip() or not _PART.fullmatch(release):
        raise ValueError(f"{compiler!r} is not a version of the Neuron compiler")
    if not generation:
        raise ValueError(f"{instance_type!r} is not an instance type of Trainium or Inferentia")
    if stack not in STACKS:
        raise ValueError(f"{stack!r} is not a stack with a compile cache; allowed: {', '.join(STACKS)}")
    named = stack in FLAGS_IN_KEY or not compiler_flags.split()
    flags = "" if named else hashlib.sha256(" ".join(compiler_flags.split()).encode()).hexdigest()[:12]
    return Place(release, generation[0], lnc, stack, world_size, flags)


def direct_url(url: str, *, compiler: str, instance_type: str, lnc: int, world_size: int = 0) -> str:
    """The URL where PyTorch/XLA itself stores the graphs that it compiles outside of jobs of `trn run`.

    Args:
        url: URL of the compile cache.
        compiler, instance_type, lnc, world_size: As in `cache_entry_place`.

    Raises:
        ValueError: The version or the instance type is invalid.
    """
    place = cache_entry_place(
        compiler=compiler, instance_type=instance_type, lnc=lnc, stack="xla", world_size=world_size
    )
    return f"{url}/{place.direct_path}"


def version_in(venv: Path, package: str) -> str:
    """The version of a package in a virtual environment, from its metadata; empty if it is not installed."""
    for folder in sorted(venv.glob(f"lib/python3*/site-packages/{package}-*.dist-info")):
        return folder.name[len(package) + 1 : -len(".dist-info")]
    return ""


def parse_key(key: str) -> EntryKey | None:
    """The entry for an object's key below the cache's URL; None for any other object."""
    match = _KEY.fullmatch(key)
    return EntryKey(_place(match), match["name"]) if match and is_name(match["name"]) else None


_LONGEST_PART = 200
"""Bytes; the limit of file systems is 255."""


def is_name(name: str) -> bool:
    """Whether the name of an entry is valid: a printable path within its folder."""
    parts = name.split("/")
    if any(len(part.encode()) > _LONGEST_PART for part in parts):
        return False
    return name.isprintable() and not name.startswith(".") and not {"", ".", ".."}.intersection(parts)


def parse_place(path: str) -> Place | None:
    """The place with this `path`; None for any other text."""
    match = _PLACE.fullmatch(path)
    return _place(match) if match else None


def _place(match: re.Match[str]) -> Place:
    return Place(
        match["release"],
        match["generation"],
        int(match["lnc"]),
        match["stack"],
        0 if match["world"] == "any" else int(match["world"]),
        match["flags"] or "",
    )


def main(arguments: list[str]) -> int:
    """Print the `direct_url` of a compiler: `python3 FILE URL INSTANCE_TYPE LNC PROCESSES ACTIVE VENV ...`.

    The compiler is that of the active environment. If it has none, the compiler is that of the newest other environment
    that has one. Without a compiler, or for a type that is neither Trainium nor Inferentia, the program prints
    URL/direct, and the reason on standard error. PROCESSES is 0 if unknown. ACTIVE and VENV are folders, which need not
    exist.
    """
    url, instance_type, lnc, processes, active, *others = arguments
    newest = sorted(others, key=lambda venv: [int(part) for part in re.findall(r"[0-9]+", venv)], reverse=True)
    compiler = next(filter(None, (version_in(Path(venv), "neuronx_cc") for venv in (active, *newest))), "")
    try:
        print(direct_url(url, compiler=compiler, instance_type=instance_type, lnc=int(lnc), world_size=int(processes)))
    except ValueError as error:
        print(f"the compile cache is not separated by release: {error}", file=sys.stderr)
        print(f"{url}/{DIRECT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
