"""`make setup` on simulated machines: tools/*.sh with stubs in place of python3, node and npm."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "cat", "cut", "date", "grep", "mkdir", "rm", "sed", "sha256sum")


class Machine:
    """A copy of the scripts, and a PATH with plain Linux tools, to which a test adds programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found, f"{tool} is not on this machine's PATH"
            (self.bin / tool).symlink_to(found)
        for name in ("package.json", "pyproject.toml", "requirements/node.txt"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(ROOT / "tools", folder / "tools")

    def add_program(self, command: str, script: str) -> None:
        path = self.bin / command
        path.write_text(f"#!/usr/bin/env bash\n{script}\n")
        path.chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        sources = "source tools/steps.sh; source tools/python_env.sh; source tools/node.sh\n"
        return subprocess.run(
            ["bash", "-c", sources + script],
            cwd=self.folder,
            env={"PATH": str(self.bin), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def prepare_node(machine: Machine) -> str:
    """The packages installed for Node: none, or the requirements file of the wheel."""
    (machine.folder / ".venv" / "bin").mkdir(parents=True)
    result = machine.run("install_requirements() { echo $3; }; link_node_wheel() { :; }; prepare_node 'make setup'")
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("version", ["v22.11.0", "v24.1.0"])
def test_supported_node_version_is_used_unchanged(machine: Machine, version: str) -> None:
    machine.add_program("node", f"echo {version}")
    machine.add_program("npm", "echo 11.0.0")
    assert prepare_node(machine) == ""


@pytest.mark.parametrize("version", ["v18.20.8", "v21.0.0", "v2.4.0"])
def test_unsupported_node_is_replaced_by_the_wheel(machine: Machine, version: str) -> None:
    machine.add_program("node", f"echo {version}")
    machine.add_program("npm", "echo 10.0.0")
    assert prepare_node(machine) == "requirements/node.txt"


def test_missing_node_is_installed_from_the_wheel(machine: Machine) -> None:
    assert prepare_node(machine) == "requirements/node.txt"


def test_node_without_npm_is_replaced_by_the_wheel(machine: Machine) -> None:
    machine.add_program("node", "echo v24.1.0")
    assert prepare_node(machine) == "requirements/node.txt"


def test_too_old_python_is_named_with_the_required_version(machine: Machine) -> None:
    machine.add_program("python3", '[[ $1 == --version ]] && echo "Python 3.9.18" || exit 1')
    result = machine.run("find_python 'make setup'")
    assert result.returncode == 1
    assert "make setup: Python 3.11 or newer is needed, found Python 3.9.18" in result.stderr


def test_python_without_venv_names_what_to_install(machine: Machine) -> None:
    machine.add_program(
        "python3", '[[ $* == *ensurepip* ]] && exit 1; [[ $1 == --version ]] && echo "Python 3.11.2"; exit 0'
    )
    result = machine.run("create_env 'make setup' .venv")
    assert result.returncode == 1
    assert "Python 3.11.2 lacks its venv module" in result.stderr
    assert "apt install python3-venv" in result.stderr


@pytest.fixture
def installing(machine: Machine) -> Machine:
    """A machine with an environment whose pip records each call."""
    machine.add_program("python3", "exit 0")
    env = machine.folder / ".venv" / "bin"
    env.mkdir(parents=True)
    (env / "pip").write_text(f"#!{env}/python\n")
    (env / "python").write_text('#!/usr/bin/env bash\n[[ $2 == pip ]] && echo "$*" >> pip-calls; exit 0\n')
    (env / "python").chmod(0o755)
    return machine


INSTALL = "install_requirements 'make setup' .venv requirements/node.txt 'a note'"


def pip_calls(machine: Machine) -> int:
    return len((machine.folder / "pip-calls").read_text().splitlines())


def test_installed_requirements_are_not_installed_again(installing: Machine) -> None:
    assert installing.run(INSTALL).returncode == 0
    assert installing.run(INSTALL).stdout == ""
    assert pip_calls(installing) == 1


def test_changed_pin_is_installed(installing: Machine) -> None:
    installing.run(INSTALL)
    path = installing.folder / "requirements/node.txt"
    path.write_text(path.read_text() + "\n")
    installing.run(INSTALL)
    assert pip_calls(installing) == 2


def test_unreachable_registry_is_named_and_counts_as_a_failure(installing: Machine) -> None:
    python = installing.folder / ".venv" / "bin" / "python"
    python.write_text(
        '#!/usr/bin/env bash\n[[ $2 == pip ]] || exit 0\necho "NewConnectionError: no route" >&2\nexit 1\n'
    )
    result = installing.run(INSTALL)
    assert result.returncode == 1
    assert "NewConnectionError" in result.stdout
    assert "make setup: requirements/node.txt could not be installed; the package registry of pip" in result.stderr
    assert installing.run(INSTALL).returncode == 1


def test_second_setup_installs_nothing_and_prints_one_line() -> None:
    env = {**os.environ, "PIP_NO_INDEX": "1", "NPM_CONFIG_OFFLINE": "true"}
    result = subprocess.run(["tools/setup.sh"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (line,) = result.stdout.splitlines()
    assert line.startswith("make setup: .venv and aws-cdk 2.")
