"""python -m tools.mutants [FILE TESTS...]: prints the changes of code with which all tests pass.

FILE is a Python file, which cosmic-ray changes. Without it, templates of the nodes' scripts are changed as
templates.toml lists. All changes are made in a copy of the repository.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TEMPLATES = Path("userdata/trainium_userdata/templates")
MUTANTS: Sequence[dict[str, str]] = tomllib.loads(Path(__file__).with_name("templates.toml").read_text())["mutants"]
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider")
SKIPPED = (
    "core/RemoveDecorator|core/Replace(Binary|Comparison)Operator_(?!(Add_Sub|Sub_Add|Mul_Sub|Div_Mul|FloorDiv_Mul|Eq_NotEq|NotEq_Eq"
    "|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Is_IsNot|IsNot_Is|In_NotIn|NotIn_In)$)"
)
"""Changes that are not made. Each operator is replaced by one other, instead of by every other."""


class Copy:
    """A copy of the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (REPOSITORY / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, folder / name)
        roots = (folder / "src", folder / "userdata", folder / "constructs", folder)
        self._environment = {**os.environ, "PYTHONPATH": ":".join(map(str, roots)), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, command: Sequence[str]) -> int:
        return subprocess.run(command, cwd=self.folder, env=self._environment, check=False).returncode

    def passes(self, tests: Iterable[str]) -> bool:
        return self.run([*PYTEST, *tests]) == 0

    def require_success(self, tests: Iterable[str]) -> None:
        if not self.passes(tests):
            sys.exit("mutants: a test fails without a change")


def change_templates(copy: Copy) -> int:
    copy.require_success({mutant["tests"] for mutant in MUTANTS})
    survived: list[str] = []
    for mutant in MUTANTS:
        file = copy.folder / TEMPLATES / mutant["file"]
        text = file.read_text()
        file.write_text(text.replace(mutant["old"], mutant["new"]))
        if copy.passes([mutant["tests"]]):
            survived.append(mutant["breaks"])
        file.write_text(text)
    print(f"\n{len(survived)} of {len(MUTANTS)} changes let all tests pass", *survived, sep="\n  ")
    return 1 if survived else 0


def change_python(copy: Copy, file: str, tests: Sequence[str]) -> int:
    started = time.monotonic()
    copy.require_success(tests)
    settings = f"""
        [cosmic-ray]
        module-path = {json.dumps(file)}
        test-command = {json.dumps(shlex.join([*PYTEST, *tests]))}
        timeout = {30 + 5 * (time.monotonic() - started)}
        excluded-modules = []
        distributor.name = "local"
        filters.operators-filter.exclude-operators = [{json.dumps(SKIPPED)}]
    """
    (copy.folder / "mutants.toml").write_text(settings)
    for command in (
        "cosmic-ray init mutants.toml mutants.sqlite",
        "cr-filter-operators mutants.sqlite mutants.toml",
        "cosmic-ray exec mutants.toml mutants.sqlite",
        "cr-report --surviving-only --show-diff mutants.sqlite",
    ):
        program, *arguments = command.split()
        if copy.run([str(REPOSITORY / ".venv-mutants/bin" / program), *arguments]):
            sys.exit(f"mutants: {command} failed")
    return 0


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="trn-mutants-") as folder:
        copy = Copy(Path(folder))
        return change_python(copy, arguments[0], arguments[1:]) if arguments else change_templates(copy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
