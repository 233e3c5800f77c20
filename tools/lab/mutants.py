"""python -m tools.lab.mutants: breaks the node program in one place at a time. A test of tests/userdata must fail.

The mutants are in mutants.toml. Each is made in a copy of the repository.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.lab.paths import REPOSITORY

MUTANTS = Path(__file__).parent / "mutants.toml"
SOURCES = Path("userdata/trainium_userdata")
WIRE_SOURCES = "trainium_wire/"
"""Code that nodes share with the other programs."""
TESTS = Path("tests/userdata")
COPIED = ("src", "userdata", "tests", "pyproject.toml")
SECONDS = 600
ALL_PASSED = 0
_FAILED = re.compile(r"^FAILED \S*?([^/\s]+\.py)::(\S+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change that breaks the node program.

    Attributes:
        file: A path below SOURCES, or a path below src that begins with WIRE_SOURCES.
        old: Text that occurs once in the file.
        new: Replacement of the text.
        breaks: The resulting fault of a node.
    """

    file: str
    old: str
    new: str
    breaks: str

    @property
    def path(self) -> Path:
        """The path in the repository."""
        return Path("src", self.file) if self.file.startswith(WIRE_SOURCES) else SOURCES / self.file


UNCHANGED = Mutant(file="locations.py", old="class NodeLocations:", new="class NodeLocations:", breaks="nothing")


def all_mutants() -> list[Mutant]:
    return [Mutant(**mutant) for mutant in tomllib.loads(MUTANTS.read_text())["mutants"]]


def noticed_by(mutant: Mutant) -> str:
    """The first test that fails on the mutant, or an empty string.

    Raises:
        ValueError: The mutant does not apply, or pytest ended without a failed test.
        subprocess.TimeoutExpired: The tests took longer than SECONDS.
    """
    with tempfile.TemporaryDirectory(prefix="trnlab-mutant-") as name:
        copy = Path(name)
        for part in COPIED:
            source = REPOSITORY / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / part)
        file = copy / mutant.path
        text = file.read_text()
        if text.count(mutant.old) != 1:
            raise ValueError(f"{mutant.file}: occurs {text.count(mutant.old)} times, not once: {mutant.old!r}")
        file.write_text(text.replace(mutant.old, mutant.new))
        run = subprocess.run(
            ["pytest", "-x", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", *_tests(copy, file)],
            cwd=copy,
            env={
                **os.environ,
                "PYTHONPATH": f"{copy / 'userdata'}:{copy / 'src'}:{copy}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if run.returncode == ALL_PASSED:
        return ""
    failed = _FAILED.search(run.stdout)
    if failed is None:
        printed = run.stdout[-2000:] + run.stderr[-2000:]
        raise ValueError(f"{mutant.file}: pytest ended with {run.returncode}, but no test failed\n{printed}")
    return f"{failed[1]}: {failed[2].split('[')[0]}"


def _tests(copy: Path, source: Path) -> Sequence[str]:
    """The test files. Those that mention the name of the source file or the subject of its folder most are first."""
    subjects = (source.name.split(".")[0], source.parent.name.split("_")[-1])

    def mentions(file: Path) -> int:
        text = file.read_text()
        return sum(text.count(subject) + 100 * (subject in file.name) for subject in subjects)

    return [str(file) for file in sorted((copy / TESTS).glob("test_*.py"), key=mentions, reverse=True)]


def main() -> int:
    """Test the mutants whose file contains one of the arguments in its path; without arguments, all."""
    if noticed_by(UNCHANGED):
        sys.exit("mutants: a test fails without a mutant, so failing tests would prove nothing")
    chosen = [
        mutant for mutant in all_mutants() if not sys.argv[1:] or any(word in mutant.file for word in sys.argv[1:])
    ]
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for mutant, test in zip(chosen, pool.map(noticed_by, chosen), strict=True):
            survivors += not test
            print(f"  {mutant.file}, {mutant.breaks}: {test or 'SURVIVED'}", flush=True)
    print(f"mutants: {len(chosen) - survivors} of {len(chosen)} noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
