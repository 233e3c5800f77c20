"""What the layout rules are about: the repository's own files, whether committed yet or not."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGE_OF = {
    "runtime": "trainium_runtime",
    "core": "trainium_core",
    "userdata": "trainium_userdata",
    "constructs": "trainium_cdk",
    "local": "trainium_local",
    "local_plugin": "trainium_local_plugin",
    "cli": "trainium_cli",
}
"""The import package that each source root holds."""


@cache
def files() -> tuple[Path, ...]:
    """All files that git would commit, relative to ROOT."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(sorted(Path(name) for name in names if name and (ROOT / name).is_file()))


def python_files() -> list[Path]:
    return [file for file in files() if file.suffix == ".py"]
