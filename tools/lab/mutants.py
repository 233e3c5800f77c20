"""python -m tools.lab.mutants: break each step of a node's verification in turn. Its unit tests must notice every time.

The mutants are in mutants.toml. Each is made in a copy of the repository; the table of all goes into
docs/project/node-lab.md.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.lab.paths import REPOSITORY

MUTANTS = Path(__file__).parent / "mutants.toml"
SOURCES = Path("userdata/trainium_userdata")
CORE_SOURCES = "trainium_core/"
"""What of the core is on nodes as well."""
TESTS = Path("tests/userdata")
PAGE = REPOSITORY / "docs" / "project" / "node-lab.md"
BEGIN, END = "<!-- mutants -->", "<!-- end of mutants -->"
COPIED = ("src", "userdata", "tests", "pyproject.toml")
SECONDS = 600
ALL_PASSED = 0
_FAILED = re.compile(r"^FAILED \S*?([^/\s]+\.py)::(\S+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change to a file below SOURCES, or of CORE_SOURCES: `old`, which occurs there once, becomes `new`."""

    file: str
    old: str
    new: str
    breaks: str

    @property
    def path(self) -> Path:
        """In the repository."""
        return Path("src", self.file) if self.file.startswith(CORE_SOURCES) else SOURCES / self.file


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the tests made of a mutant. noticed_by: the first test that failed; empty when none did."""

    mutant: Mutant
    noticed_by: str


UNCHANGED = Mutant(file="locations.py", old="class NodeLocations:", new="class NodeLocations:", breaks="nothing")


def all_mutants() -> list[Mutant]:
    return [Mutant(**mutant) for mutant in tomllib.loads(MUTANTS.read_text())["mutants"]]


def judge(mutant: Mutant) -> Verdict:
    """Run the tests on the mutant. Raises ValueError when it does not apply, or when the tests cannot be run."""
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
        return Verdict(mutant=mutant, noticed_by="")
    failed = _FAILED.search(run.stdout)
    if failed is None:
        raise ValueError(f"{mutant.file}: the tests broke off\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return Verdict(mutant=mutant, noticed_by=f"{failed[1]}: {failed[2].split('[')[0]}")


def _tests(copy: Path, source: Path) -> Sequence[str]:
    """The test files, those that name the subject most often first: a file's name, or what its folder is about."""
    subjects = (source.name.split(".")[0], source.parent.name.split("_")[-1])

    def mentions(file: Path) -> int:
        text = file.read_text()
        return sum(text.count(subject) + 100 * (subject in file.name) for subject in subjects)

    return [str(file) for file in sorted((copy / TESTS).glob("test_*.py"), key=mentions, reverse=True)]


def table(verdicts: Iterable[Verdict]) -> str:
    rows = [f"| `{verdict.mutant.file}` | {verdict.mutant.breaks} | {_test_name(verdict)} |" for verdict in verdicts]
    return "\n".join(["| file | what is broken | noticed by |", "|---|---|---|", *rows])


def _test_name(verdict: Verdict) -> str:
    return f"`{verdict.noticed_by}`" if verdict.noticed_by else "**nothing**"


def write_table(verdicts: Sequence[Verdict]) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(verdicts)}\n{END}{after}")


def _judged(mutants: Sequence[Mutant]) -> Iterator[Verdict]:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for verdict in pool.map(judge, mutants):
            print(f"  {'noticed' if verdict.noticed_by else 'SURVIVED'}: {verdict.mutant.breaks}", flush=True)
            yield verdict


def main() -> int:
    """Judge the mutants that the arguments name by a part of their file's name; all, and the page, without one."""
    if judge(UNCHANGED).noticed_by:
        sys.exit("mutants: a test fails on the sources as they are; each mutant would seem noticed")
    chosen = [one for one in all_mutants() if not sys.argv[1:] or any(word in one.file for word in sys.argv[1:])]
    verdicts = list(_judged(chosen))
    if not sys.argv[1:]:
        write_table(verdicts)
    survivors = sum(not verdict.noticed_by for verdict in verdicts)
    print(f"mutants: {len(verdicts) - survivors} of {len(verdicts)} noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
