"""A bare node installs its software: the commands, and the messages when they fail.

Package managers and downloads are stand-ins; the lab installs from a signed repository.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.booting_node import BootingNode, Run
from tests.userdata.conftest import NodeMaker
from tests.userdata.plans import plan_for
from trainium_core.catalog.neuron_software import neuron_packages

BARE: dict[str, Any] = {"neuron_software": "install", "ami": "ami-0123456789abcdef0", "egress": "nat-gateway"}
PLAN = plan_for("trn1.2xlarge", **BARE)
WITH_EFA = plan_for("trn1.32xlarge", **BARE)
EFA = neuron_packages()["efa_installer"]
(NEURON_KEY,) = neuron_packages()["repository"]["key_fingerprints"]
OTHER_KEY = "0" * 40


OF_NEURON = f"if [[ $* == *--homedir* ]]; then if [[ $* == *'--export {NEURON_KEY}' ]]; then echo key; fi; exit; fi\n"
"""A gpg that imports and exports the key of the Neuron repository."""


def signed_by(key: str, *, name: str = "Amazon") -> str:
    """A gpg that accepts the signature of the EFA installer."""
    lines = f"[GNUPG:] GOODSIG {key[-16:]} {name}\n[GNUPG:] VALIDSIG {key} 2026-11-01 0 0 4 0 1 8 00 {key}"
    return f"{OF_NEURON}[[ $* != *--verify* ]] || echo '{lines}'"


def bare(node: BootingNode, manager: str = "apt-get") -> BootingNode:
    node.install_copy()
    for folder in ("etc/apt/sources.list.d", "etc/yum.repos.d", "usr/share/keyrings"):
        (node.root / folder).mkdir(parents=True)
    node.write("etc/os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n")
    node.record_calls(manager)
    node.record_calls("curl", 'while (($# > 1)); do if [[ $1 == --output ]]; then echo key >"$2"; fi; shift; done')
    node.program("gpg", OF_NEURON)
    for name in ("gcc", "mktemp"):
        if found := shutil.which(name):
            (node.programs / name).symlink_to(found)
    return node


def reason(run: Run) -> str:
    assert run.exit_code == 1, run.output
    return run.calls[-1].removeprefix("trn-node report failed ")


def test_ubuntu_installs_pinned_packages_with_a_separate_key(node_for: NodeMaker):
    node = bare(node_for(PLAN))
    run = node.boot()
    assert run.exit_code == 0, run.output
    assert node.read("etc/apt/sources.list.d/trn-neuron.list") == (
        "deb [signed-by=/usr/share/keyrings/trn-neuron.asc] https://apt.repos.neuron.amazonaws.com noble main\n"
    )
    assert node.read("usr/share/keyrings/trn-neuron.asc") == "key\n"
    (installed,) = [call for call in run.calls if "aws-neuronx-dkms" in call]
    packages = neuron_packages()["release"]["packages"]
    assert installed.split()[-len(packages) :] == [f"{name}={version}*" for name, version in packages.items()]
    assert "modprobe neuron" in run.calls


def test_amazon_linux_installs_the_same_versions(node_for: NodeMaker):
    node = bare(node_for(PLAN), "dnf")
    run = node.boot()
    assert run.exit_code == 0, run.output
    assert "gpgcheck=1\ngpgkey=file:///etc/trn/neuron.asc\n" in node.read("etc/yum.repos.d/trn-neuron.repo")
    assert node.read("etc/trn/neuron.asc") == "key\n"
    (installed,) = [call for call in run.calls if "aws-neuronx-dkms" in call]
    packages = neuron_packages()["release"]["packages"]
    assert installed.split()[-len(packages) :] == [f"{name}-{version}*" for name, version in packages.items()]


def test_amazon_linux_finds_headers_of_any_of_its_kernels(node_for: NodeMaker):
    # Their package is kernel-devel for the first kernel and kernel6.12-devel for a later one; both provide the same
    # name.
    calls = bare(node_for(PLAN), "dnf").boot().calls
    assert f"dnf install --assumeyes kernel-devel-uname-r = {os.uname().release} gcc make" in calls


@pytest.mark.parametrize("manager", ["apt-get", "dnf"])
@pytest.mark.parametrize(
    ("gpg", "says"),
    [
        ("", f"the Neuron repository has no key with a fingerprint that AWS documents: {NEURON_KEY}"),
        ("exit 2", "the key of the Neuron repository cannot be read"),
    ],
)
def test_repository_with_another_key_is_not_used(gpg: str, says: str, manager: str, node_for: NodeMaker):
    node = bare(node_for(PLAN), manager)
    node.program("gpg", gpg)
    run = node.boot()
    assert says in reason(run)
    assert [call for call in run.calls if call.startswith(manager)] == []


def test_second_boot_downloads_nothing_and_loads_the_driver(node_for: NodeMaker):
    node = bare(node_for(PLAN))
    node.boot()
    calls = node.boot().calls
    assert [call for call in calls if call.startswith(("apt-get", "curl"))] == []
    assert "modprobe neuron" in calls


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (
            "W: GPG error: https://apt.repos.neuron.amazonaws.com noble InRelease: EXPKEYSIG 5749CAD8646D9185 Amazon",
            "apt-get update: the key that its repository publishes has expired (EXPKEYSIG); AWS has to renew it: ",
        ),
        (
            "W: GPG error: x InRelease: The following signatures were invalid: BADSIG 5749CAD8646D9185 Amazon",
            "apt-get update: the packages are not signed by the key of the repository: W: GPG error",
        ),
        ("", "apt-get update: no output"),
    ],
    ids=["expired", "bad signature", "silent"],
)
def test_failing_repository_is_reported_by_its_cause(output: str, says: str, node_for: NodeMaker, tmp_path: Path):
    node = bare(node_for(PLAN))
    (tmp_path / "output").write_text(output)
    node.record_calls("apt-get", f'[[ $1 != update ]] || {{ cat "{tmp_path}/output"; exit 100; }}')
    run = node.boot()
    assert reason(run).startswith(says)
    assert [call.split()[1] for call in run.calls if call.startswith("apt-get")] == ["update"] * 3


def test_driver_that_does_not_load_is_reported_with_kernel_message(node_for: NodeMaker):
    node = bare(node_for(PLAN))
    node.record_calls("modprobe", 'echo "modprobe: ERROR: could not insert neuron: Exec format error" >&2; exit 1')
    assert reason(node.boot()) == (
        "the Neuron driver is installed but does not load: modprobe: ERROR: could not insert neuron: Exec format error"
    )


@pytest.mark.parametrize(
    ("gpg", "says"),
    [
        (signed_by(OTHER_KEY), f"not signed by the key {EFA['key_fingerprint']}, which AWS documents"),
        (
            signed_by(OTHER_KEY, name=f"[GNUPG:] VALIDSIG x {EFA['key_fingerprint']}"),
            f"not signed by the key {EFA['key_fingerprint']}, which AWS documents",
        ),
        (
            f"{OF_NEURON}[[ $* != *--verify* ]]",
            "the signature of the EFA installer is wrong: the installer was not run",
        ),
        (f"{OF_NEURON}exit 2", "the key of the EFA installer cannot be read"),
    ],
    ids=["another key", "another key with a deceptive name", "bad signature", "no key"],
)
def test_efa_installer_with_a_foreign_signature_is_not_run(gpg: str, says: str, node_for: NodeMaker):
    node = bare(node_for(WITH_EFA))
    node.program("gpg", gpg)
    node.record_calls("tar")
    run = node.boot()
    assert says in reason(run)
    assert [call for call in run.calls if call.startswith("tar")] == []


def test_efa_installer_signed_by_amazon_is_run(node_for: NodeMaker):
    node = bare(node_for(WITH_EFA))
    node.program("gpg", signed_by(EFA["key_fingerprint"]))
    node.record_calls(
        "tar", 'mkdir "$2/aws-efa-installer"; cp "$ROOT/installer" "$2/aws-efa-installer/efa_installer.sh"'
    )
    node.write("installer", '#!/bin/bash\necho "efa_installer.sh $*" >>"$ROOT/calls"\n')
    (node.root / "installer").chmod(0o755)
    run = node.boot()
    assert run.exit_code == 0, run.output
    assert "efa_installer.sh --yes" in run.calls
