"""The wheel as somebody else has it: in an environment of their own that knows nothing of this repository."""

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.constructs.synth import ROOT
from tests.shared import made_once

DOWNSTREAM_APP = Path(__file__).parent / "downstream_app" / "app.py"


@dataclass(frozen=True, kw_only=True)
class WheelEnvironment:
    """`python` runs with the wheel and what it needs; `trn` is the command that came with it."""

    wheel: Path
    python: Path

    @property
    def trn(self) -> Path:
        return self.python.parent / "trn"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the caller, without paths that lead back to this repository."""
        return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(self, *command: str | Path, folder: Path) -> str:
        """What a command prints that runs in a folder elsewhere. Raises CalledProcessError when it fails."""
        result = subprocess.run(
            command, cwd=folder, env=self.variables, stdout=subprocess.PIPE, check=True, text=True, timeout=120
        )
        return result.stdout


def build_wheel(folder: Path, project: Path = ROOT) -> Path:
    """Build the wheel of this repository, or of a project in it, with the tools that are installed, without network."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel() -> WheelEnvironment:
    """Build the wheel, and install it into a new environment that borrows the packages it needs from this one.

    Once in a run of pytest.
    """
    folder = made_once("wheel environment", _install_wheel)
    (wheel,) = (folder / "dist").glob("*.whl")
    return WheelEnvironment(wheel=wheel, python=folder / "venv" / "bin" / "python")


def _install_wheel(folder: Path) -> None:
    wheel = build_wheel(folder / "dist")
    environment = folder / "venv"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # A folder named in a .pth file is searched, but the .pth files in it, such as that of an editable install, are not.
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")


def synthesize_downstream_app(environment: WheelEnvironment) -> Path:
    """Synthesise downstream_app/ with the wheel alone, once in a run of pytest. Returns the cloud assembly."""

    def make(folder: Path) -> None:
        app = folder / "app.py"
        app.write_text(DOWNSTREAM_APP.read_text())
        environment.run(environment.python, app, folder=folder)

    return made_once("downstream app", make) / "cdk.out"
