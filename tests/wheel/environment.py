"""Environments that contain the wheel, independent of this repository."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.constructs.synth import ROOT, Json
from tests.shared import made_once

DOWNSTREAM_APPS = Path(__file__).parent / "downstream_apps"

_IN_TURN = """
import functools, json, runpy, sys
import aws_cdk
App = aws_cdk.App
for outdir, context in json.load(sys.stdin).items():
    aws_cdk.App = functools.partial(App, outdir=outdir, context=context)
    runpy.run_path(outdir + ".py", run_name="__main__")
"""
"""Runs apps in one process, since a synthesis mostly waits for the start of the CDK. The output folder and the context
are arguments of `App`, because the CDK reads the environment variables of the CDK CLI only once in a process.
"""


@dataclass(frozen=True, kw_only=True)
class WheelEnvironment:
    """An environment with the wheel and its requirements.

    Attributes:
        wheel: The file of the wheel.
        python: The interpreter of the environment.
    """

    wheel: Path
    python: Path

    @property
    def trn(self) -> Path:
        return self.python.parent / "trn"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the caller, without those of Python."""
        return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(self, *command: str | Path, folder: Path, stdin: str | None = None) -> str:
        """Run a command in a folder, and return its standard output.

        Raises:
            CalledProcessError: The command failed.
        """
        result = subprocess.run(
            command,
            cwd=folder,
            env=self.variables,
            input=stdin,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            timeout=480,
        )
        return result.stdout


def build_wheel(folder: Path, project: Path = ROOT) -> Path:
    """Build the wheel of this repository, or of a project in it, with the installed tools and without network."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(*extras: str, also: Sequence[str] = ()) -> WheelEnvironment:
    """Build the wheel, and install it into a new environment with exactly its requirements and those of its extras.

    The requirements are linked from the environment of the tests. Done once in a run of pytest for the same arguments.

    Args:
        extras: Extras of the wheel.
        also: Other packages to link. Default: none.
    """
    folder = made_once(f"wheel environment {extras} {also}", lambda folder: _install_wheel(folder, extras, also))
    return WheelEnvironment(wheel=built_wheel(), python=folder / "venv" / "bin" / "python")


def built_wheel() -> Path:
    """The wheel of this repository, built once in a run of pytest."""
    (wheel,) = made_once("wheel", build_wheel).glob("*.whl")
    return wheel


def _install_wheel(folder: Path, extras: Sequence[str], also: Sequence[str]) -> None:
    environment = folder / "venv"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(built_wheel())], check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    borrow(site_packages, Path(sysconfig.get_path("purelib")), extras, also)


def unpack_wheel(wheel: Path, site_packages: Path) -> None:
    """Unpack a wheel for a Python without pip. Its commands are not created."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site_packages)


def borrow(site_packages: Path, lender: Path, extras: Sequence[str] = (), also: Sequence[str] = ()) -> None:
    """Link the direct and indirect requirements of a wheel from another environment.

    Args:
        site_packages: The folder with the wheel, which gets the links.
        lender: The folder site-packages of the other environment.
        extras: Extras of the wheel. Default: none.
        also: Other packages to link. Default: none.
    """
    lent = {canonicalize_name(one.name): one for one in distributions(path=[str(lender)])}
    (wheel,) = distributions(name="trainium-cdk", path=[str(site_packages)])
    ahead, borrowed = [(wheel, frozenset(extras)), *((lent[name], frozenset[str]()) for name in also)], set(also)
    while ahead:
        distribution, wanted = ahead.pop()
        for requirement in map(Requirement, distribution.requires or ()):
            name = canonicalize_name(requirement.name)
            if not any(_applies(requirement, extra) for extra in ("", *wanted)):
                continue
            if name == "trainium-cdk":
                ahead.append((wheel, frozenset(requirement.extras)))
            elif name not in borrowed:
                borrowed.add(name)
                ahead.append((lent[name], frozenset(requirement.extras)))
    for name in borrowed:
        for top in {file.parts[0] for file in lent[name].files or () if file.parts[0] != ".."}:
            if not (site_packages / top).exists():
                (site_packages / top).symlink_to(lender / top)


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def synthesize_apps(environment: WheelEnvironment, folder: Path, apps: Mapping[str, tuple[str, Json]]) -> None:
    """Synthesise apps with the wheel alone.

    Args:
        environment: The environment of the wheel.
        folder: Gets a cloud assembly with the name of each app.
        apps: The code and the context of each app, by its name.
    """
    for name, (code, _) in apps.items():
        (folder / f"{name}.py").write_text(code)
    contexts = json.dumps({name: context for name, (_, context) in apps.items()})
    environment.run(environment.python, "-c", _IN_TURN, folder=folder, stdin=contexts)
