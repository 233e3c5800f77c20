"""The key of the Neuron repository, with keys of the test. `make security` runs this file, because it needs gpg."""

import shutil
from pathlib import Path

import pytest

from tests.userdata.conftest import NodeMaker
from tests.userdata.test_node_software import PLAN, bare, reason
from tests.userdata.test_pcs_image import gpg, make_key
from trainium_core.catalog.neuron_software import neuron_packages

SERVE = 'while (($# > 1)); do if [[ $1 == --output ]]; then cp "$ROOT/served" "$2"; fi; shift; done'
KEYRING = "usr/share/keyrings/trn-neuron.asc"


def armored(home: Path) -> str:
    return gpg(home, "--armor", "--export")


def under_another_heading(key: str) -> str:
    """A key in a block that gpg does not read. apt reads the first block of the file, whatever its heading."""
    lines = [line for line in key.splitlines() if line and not line.startswith(("-----", "="))]
    return "\n".join(["-----BEGIN NOTICE-----", "", *lines, "-----END NOTICE-----", ""])


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The key that a node is to trust, and another one."""
    fingerprint = make_key(tmp_path / "neuron")
    make_key(tmp_path / "other")
    monkeypatch.setitem(neuron_packages()["repository"], "key_fingerprints", [fingerprint])
    return armored(tmp_path / "neuron"), armored(tmp_path / "other")


@pytest.mark.parametrize("hide", [str, under_another_heading], ids=["plain", "under another heading"])
@pytest.mark.parametrize("is_first", [True, False])
def test_another_key_in_the_file_is_not_trusted(
    hide: type[str], is_first: bool, keys: tuple[str, str], node_for: NodeMaker, tmp_path: Path
):
    own, other = keys[0], hide(keys[1])
    node = bare(node_for(PLAN))
    node.program("gpg", f'exec {shutil.which("gpg")} "$@"')
    node.record_calls("curl", SERVE)
    node.write("served", other + own if is_first else own + other)
    run = node.boot()
    assert run.exit_code == 0, run.output
    (tmp_path / "read").mkdir(mode=0o700)
    trusted = node.read(KEYRING)
    assert trusted.startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----")
    assert trusted.count("-----BEGIN") == 1
    gpg(tmp_path / "read", "--import", str(node.root / KEYRING))
    assert armored(tmp_path / "read") == own


def test_file_without_the_key_is_refused(keys: tuple[str, str], node_for: NodeMaker):
    node = bare(node_for(PLAN))
    node.program("gpg", f'exec {shutil.which("gpg")} "$@"')
    node.record_calls("curl", SERVE)
    node.write("served", keys[1])
    assert "no key with a fingerprint that AWS documents" in reason(node.boot())
