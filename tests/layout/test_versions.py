"""Deployed code has its own version, which must change when the code does."""

import hashlib
import tomllib

import pytest

import trainium_runtime
from tests.layout.repository import ROOT, python_files
from trainium_userdata.node import trn_node

DECLARED = tomllib.loads((ROOT / "tests/layout/versions.toml").read_text())
FOLDERS = {
    "functions": ("src/trainium_wire", "src/trainium_runtime"),
    "node program": ("src/trainium_wire", "userdata/trainium_userdata/node"),
}
VERSIONS = {"functions": trainium_runtime.__version__, "node program": trn_node.__version__}


def digest(folders: tuple[str, ...]) -> str:
    """SHA-256 of the names and contents of the Python files in folders."""
    found = hashlib.sha256()
    for folder in folders:
        for file in python_files():
            if file.is_relative_to(folder):
                content = hashlib.sha256((ROOT / file).read_bytes()).digest()
                found.update(f"{file.relative_to(folder)} ".encode() + content)
    return found.hexdigest()


@pytest.mark.parametrize("name", FOLDERS)
def test_change_of_deployed_code_changes_its_version(name: str) -> None:
    now = {"version": VERSIONS[name], "sha256": digest(FOLDERS[name])}
    declared = DECLARED[name]
    assert now == declared, (
        f"the {name} changed: raise its __version__, then write these values into tests/layout/versions.toml: {now}"
        if now["version"] == declared["version"]
        else f"write these values of the {name} into tests/layout/versions.toml: {now}"
    )
