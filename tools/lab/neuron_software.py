"""The software of Neuron and EFA: stand-ins of the programs, in packages with the real names and versions."""

import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tools.lab.apt_repository import Package
from tools.lab.signing import SigningKey
from trainium_core.catalog.neuron_software import neuron_packages
from trainium_core.facts import facts
from trainium_local.seeds import table

PATH_ON_NODE = "/usr/lib/trnlab"
NEURON_PROGRAMS = ("neuron-ls", "neuron-monitor", "nccom-test")
EFA_PROGRAM = "opt/amazon/efa/bin/fi_info"
EFA_INSTALLER = """\
#!/bin/bash
set -e
here=$(dirname "$0")
install -D -m 755 "$here/fi_info" /opt/amazon/efa/bin/fi_info
echo "EFA installer of a test lab, called with: $*"
"""


def wrapper(program: str, *arguments: str) -> str:
    """A program that calls one of tools/lab/stand_ins with these arguments before its own."""
    return f'#!/bin/sh\nexec {" ".join((f"{PATH_ON_NODE}/{program}.py", *arguments))} "$@"\n'


@cache
def default_image() -> Mapping[str, Any]:
    """The image of plans that name no image, as the embedded AWS has it."""
    images = table("neuron_images")
    parameter = facts()["image"]["ssm_parameter"].removeprefix(f"{images['prefix']}/").removesuffix("/latest/image_id")
    return next(image for image in images["image"] if image.get("parameter") == parameter)


def neuron_software(versions: Mapping[str, str]) -> Sequence[Package]:
    """The packages of a Neuron release, from their versions by name."""
    tools = {f"opt/aws/neuron/bin/{name}": wrapper(name.replace("-", "_")) for name in NEURON_PROGRAMS}
    driver = {"usr/share/trnlab/neuron_driver": versions["aws-neuronx-dkms"] + "\n"}
    contents = {
        "aws-neuronx-dkms": driver,
        "aws-neuronx-runtime-lib": {"opt/aws/neuron/lib/libnrt.so.1": ""},
        "aws-neuronx-collectives": {"opt/aws/neuron/lib/libnccom.so.2": ""},
        "aws-neuronx-tools": tools,
    }
    return [Package(name=name, version=version, files=contents[name]) for name, version in versions.items()]


def write_efa_installer(folder: Path, work: Path, key: SigningKey) -> None:
    """Write the archive, its signature and its signing key, as on the installer's host."""
    facts = neuron_packages()["efa_installer"]
    folder.mkdir(parents=True)
    content = work / "aws-efa-installer"
    content.mkdir(parents=True)
    for name, text in (("efa_installer.sh", EFA_INSTALLER), ("fi_info", wrapper("fi_info"))):
        (content / name).write_text(text)
        (content / name).chmod(0o755)
    archive = folder / facts["archive"]
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(content, content.name)
    key.detach_sign(archive)
    (folder / facts["key_file"]).write_bytes(key.public)
