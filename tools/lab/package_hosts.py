"""The hosts that a bare node installs from, as folders of files: Neuron's apt repository and the EFA installer."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tools.lab.apt_repository import Package, build_package, write_repository
from tools.lab.neuron_software import default_image, neuron_software, write_efa_installer
from tools.lab.signing import SigningKey, make_key
from trainium_core.catalog.neuron_software import neuron_packages

SUITE = "noble"
"""The release that layers.OS_RELEASE names."""


@dataclass(frozen=True, kw_only=True)
class PackageHosts:
    """Hosts of package repositories.

    Attributes:
        hosts: A folder that contains a folder for each host.
        with_expired_key: The same, but the repository is signed with a key that has expired.
        image_packages: The packages that the default image has.
    """

    hosts: Path
    with_expired_key: Path
    image_packages: Sequence[Path]


def write_package_hosts(folder: Path) -> PackageHosts:
    """Build the packages and lay out the hosts, with keys that live as long as the folder."""
    folder.mkdir(parents=True)
    packages = _build(folder, neuron_packages()["release"]["packages"])
    headers = build_package(Package(name=f"linux-headers-{os.uname().release}", version="1"), folder)
    efa_key = make_key(folder / "keys/efa", "EFA installer")
    # From here on, rendered user data trusts these keys instead of Amazon's.
    neuron_packages()["efa_installer"]["key_fingerprint"] = efa_key.fingerprint
    neuron_packages()["repository"]["key_fingerprints"] = []
    hosts = {False: folder / "hosts", True: folder / "hosts-with-expired-key"}
    for expired, host in hosts.items():
        key = make_key(folder / f"keys/neuron-{expired}", "Neuron packages", expired=expired)
        neuron_packages()["repository"]["key_fingerprints"].append(key.fingerprint)
        _write_neuron(host, [*packages, headers], key)
        _write_efa(host, folder / f"efa-{expired}", efa_key)
    image_packages = _build(folder / "image", default_image()["packages"])
    return PackageHosts(hosts=hosts[False], with_expired_key=hosts[True], image_packages=image_packages)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _build(folder: Path, versions: Mapping[str, str]) -> Sequence[Path]:
    return [build_package(package, folder) for package in neuron_software(versions)]


def _write_neuron(hosts: Path, packages: Sequence[Path], key: SigningKey) -> None:
    facts = neuron_packages()["repository"]
    folder = hosts / host_of(facts["apt"])
    write_repository(folder, packages, suites=[SUITE], key=key)
    (folder / facts["key_file"]).write_bytes(key.public)


def _write_efa(hosts: Path, work: Path, key: SigningKey) -> None:
    write_efa_installer(hosts / host_of(neuron_packages()["efa_installer"]["url"]), work, key)
