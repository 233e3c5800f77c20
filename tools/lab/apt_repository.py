"""A signed apt repository of stand-in packages, with the names and versions of the real ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.lab.shell import run
from tools.lab.signing import SigningKey

ARCHITECTURE = "amd64"
MAINTAINER = "trnlab <trnlab@example.invalid>"


@dataclass(frozen=True, kw_only=True)
class Package:
    """A Debian package.

    Attributes:
        files: Text by path on the node, without the leading slash. All files are executable.
        after_install: Shell commands that run after the installation.
    """

    name: str
    version: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    depends: str = ""
    after_install: str = ""


def build_package(package: Package, folder: Path) -> Path:
    """Write the package's .deb into the folder and return it."""
    tree = folder / "trees" / package.name
    control = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": ARCHITECTURE,
        "Maintainer": MAINTAINER,
        "Depends": package.depends,
        "Description": f"stand-in for {package.name}, of a test lab",
    }
    _write(tree / "DEBIAN/control", "".join(f"{name}: {value}\n" for name, value in control.items() if value))
    if package.after_install:
        _write(tree / "DEBIAN/postinst", f"#!/bin/sh\nset -e\n{package.after_install}\n")
    for path, text in package.files.items():
        _write(tree / path, text)
    target = folder / f"{package.name}_{package.version}_{ARCHITECTURE}.deb"
    run("dpkg-deb", "-Zgzip", "--root-owner-group", "--build", tree, target)
    return target


def write_repository(folder: Path, packages: Sequence[Path], *, suites: Sequence[str], key: SigningKey) -> None:
    """Write a signed repository that has these packages in every suite."""
    pool = folder / "pool"
    pool.mkdir(parents=True)
    for package in packages:
        (pool / package.name).hardlink_to(package)
    index = run("apt-ftparchive", "packages", "pool", folder=folder)
    for suite in suites:
        lists = folder / "dists" / suite
        _write(lists / f"main/binary-{ARCHITECTURE}/Packages", index)
        facts = {"Codename": suite, "Suite": suite, "Components": "main", "Architectures": ARCHITECTURE}
        options = [f"-oAPT::FTPArchive::Release::{name}={value}" for name, value in facts.items()]
        (lists / "Release").write_text(run("apt-ftparchive", *options, "release", lists))
        key.clear_sign(lists / "Release", lists / "InRelease")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
