"""The files that the layout rules check: those of the repository, committed or not."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = {
    "trainium_wire": Path("src/trainium_wire"),
    "trainium_runtime": Path("src/trainium_runtime"),
    "trainium_core": Path("src/trainium_core"),
    "trainium_userdata": Path("userdata/trainium_userdata"),
    "trainium_cdk": Path("constructs/trainium_cdk"),
    "trainium_local": Path("src/trainium_local"),
    "trainium_cli": Path("src/trainium_cli"),
}
"""The folder of each import package. Their parent folders contain no modules."""


@cache
def files() -> tuple[Path, ...]:
    """All files that git would commit, relative to ROOT."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(sorted(Path(name) for name in names if name and (ROOT / name).is_file()))


def python_files() -> list[Path]:
    return [file for file in files() if file.suffix == ".py"]
