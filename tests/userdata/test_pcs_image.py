"""The script that makes an image for AWS PCS, with archives signed by a key of the test. curl is a stand-in.

`make security` runs this file, because it needs gpg.
"""

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.userdata.test_bash import shellcheck
from trainium_core.facts import facts
from trainium_userdata.pcs_image import pcs_image_component, pcs_image_script

REGION = "us-west-2"
INSTALLERS = facts()["pcs"]["installers"]
ARCHIVES = [INSTALLERS["agent"], *INSTALLERS["slurm"].values()]
MAX_CHARACTERS = 16_000
"""Limit of a component's document (CloudFormation's schema of AWS::ImageBuilder::Component)."""

CURL = """#!/bin/bash
while [[ $1 != --output ]]; do shift; done
cp "$REPOSITORY/${3##*/}" "$2"
"""


def gpg(home: Path, *command: str) -> str:
    words = ["gpg", "--batch", "--homedir", str(home), "--pinentry-mode", "loopback", "--passphrase", "", *command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def make_key(home: Path, name: str = "AWS PCS Packages") -> str:
    """Create a key. Returns its fingerprint."""
    home.mkdir(mode=0o700)
    gpg(home, "--quick-generate-key", name, "rsa2048", "sign", "never")
    return fingerprint(home)


def fingerprint(home: Path) -> str:
    lines = gpg(home, "--with-colons", "--list-keys").splitlines()
    return next(line.split(":")[9] for line in lines if line.startswith("fpr:"))


def put_archive(repository: Path, work: Path, archive: Mapping[str, str], *, home: Path) -> str:
    """Make a signed archive whose installer writes the version file. Returns the SHA-256 of the archive."""
    version = archive["folder"].removeprefix("aws-pcs-slurm-").removesuffix("-installer")
    slurm = version[0].isdigit()
    place = f"$ROOT/opt/aws/pcs/{f'scheduler/slurm-{version}/' if slurm else ''}version"
    folder = work / archive["folder"]
    folder.mkdir(parents=True)
    installer = folder / "installer.sh"
    installer.write_text(f'#!/bin/bash\nmkdir -p "$(dirname "{place}")"\necho "{archive["folder"]} $*" >"{place}"\n')
    installer.chmod(0o755)
    name = archive["archive"].rpartition("/")[2]
    with tarfile.open(repository / name, "w:gz") as packed:
        packed.add(folder, archive["folder"])
    gpg(home, "--detach-sign", "--output", str(repository / f"{name}.sig"), str(repository / name))
    return hashlib.sha256((repository / name).read_bytes()).hexdigest()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    return made


@pytest.fixture
def script(tmp_path: Path, repository: Path) -> str:
    """The script with the fingerprint and checksums of the test."""
    home = tmp_path / "keys"
    text = pcs_image_script(REGION).replace(INSTALLERS["key_fingerprint"], make_key(home))
    for archive in ARCHIVES:
        digest = put_archive(repository, tmp_path / "built", archive, home=home)
        text = text.replace(archive["sha256"], digest) if archive["sha256"] else text
    (repository / "aws-pcs-public-key.pub").write_text(gpg(home, "--armor", "--export"))
    return text


@pytest.fixture
def run(tmp_path: Path, repository: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    programs, root = tmp_path / "programs", tmp_path / "root"
    programs.mkdir()
    (root / "etc/apt/apt.conf.d").mkdir(parents=True)
    (programs / "curl").write_text(CURL)
    (programs / "curl").chmod(0o755)
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(root), "REPOSITORY": str(repository)}

    def run(text: str) -> subprocess.CompletedProcess[str]:
        words = ["bash", "-c", text]
        return subprocess.run(words, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


Run = Callable[[str], subprocess.CompletedProcess[str]]


def test_shellcheck_finds_nothing_in_the_script() -> None:
    assert shellcheck(pcs_image_script(REGION)) == ""


def test_component_fits_and_holds_no_variable_of_image_builder() -> None:
    document = pcs_image_component(REGION)
    assert len(document) <= MAX_CHARACTERS
    assert "{{" not in document


def test_agent_and_both_versions_of_slurm_are_installed(script: str, run: Run, tmp_path: Path) -> None:
    result = run(script)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "aws-pcs-agent ",
        "aws-pcs-slurm-26.05-installer -y",
        "aws-pcs-slurm-25.11-installer -y",
    ]
    assert list((tmp_path / "root/etc/apt/apt.conf.d").iterdir()) == []


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive["folder"])
def test_changed_archive_is_not_installed(
    script: str, run: Run, tmp_path: Path, repository: Path, archive: Mapping[str, str]
) -> None:
    changed = repository / archive["archive"].rpartition("/")[2]
    changed.write_bytes(changed.read_bytes() + b"\0")
    result = run(script)
    assert result.returncode == 1
    what = "checksum" if archive["sha256"] else "signature"
    assert f"the {what} of {changed.name} is wrong" in result.stderr
    installed = [file.read_text() for file in (tmp_path / "root/opt").rglob("version")]
    assert not any(text.startswith(archive["folder"]) for text in installed)


@pytest.mark.parametrize("is_deceptive", [False, True])
def test_archive_of_another_signer_is_not_installed(
    script: str, run: Run, tmp_path: Path, repository: Path, is_deceptive: bool
) -> None:
    """Messages of gpg contain the name of the key, which its owner chooses."""
    home = tmp_path / "other"
    make_key(home, f"VALIDSIG x {fingerprint(tmp_path / 'keys')}" if is_deceptive else "AWS PCS Packages")
    name = ARCHIVES[0]["archive"].rpartition("/")[2]
    (repository / f"{name}.sig").unlink()
    gpg(home, "--detach-sign", "--output", str(repository / f"{name}.sig"), str(repository / name))
    with (repository / "aws-pcs-public-key.pub").open("a") as keys:
        keys.write(gpg(home, "--armor", "--export"))
    result = run(script)
    assert (result.returncode, f"{name} is signed by another key" in result.stderr) == (1, True)
    assert not (tmp_path / "root/opt").exists()


def test_absent_archive_is_named(script: str, run: Run, repository: Path) -> None:
    (repository / ARCHIVES[1]["archive"].rpartition("/")[2]).unlink()
    result = run(script)
    assert result.returncode == 1
    assert "cannot fetch https://aws-pcs-repo-us-west-2.s3.us-west-2.amazonaws.com/aws-pcs-slurm/" in result.stderr
