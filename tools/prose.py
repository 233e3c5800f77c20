"""Searches the repository's texts for the phrases in tools/prose.toml: a step of `make lint`."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
_SUFFIXES = (".py", ".md", ".toml", ".j2", ".sh", ".yml")
_EXCLUDED = ("CHANGELOG.md", "tools/prose.toml", "tests/tools/test_prose.py", "examples/lm/NOTICE.md")


def texts() -> Iterator[Path]:
    """The text files of the repository, as git lists them, without _EXCLUDED."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        if name.endswith(_SUFFIXES) and name not in _EXCLUDED and (ROOT / name).is_file():
            yield ROOT / name


def findings_in(text: str, name: str) -> Iterator[str]:
    """The first match of each listed phrase in each line, as `file:line: words: what to write`."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, write in _habits():
            match = pattern.search(line)
            if match:
                yield f"{name}:{number}: {match[0]!r}: write {write}"


@cache
def _habits() -> list[tuple[re.Pattern[str], str]]:
    habits = tomllib.loads((ROOT / "tools/prose.toml").read_text())["habit"]
    return [(re.compile(habit["pattern"], re.IGNORECASE), habit["write"]) for habit in habits]


def main() -> None:
    """Print every finding. Exit code 1 if there is one."""
    findings = [finding for path in texts() for finding in findings_in(path.read_text(), str(path.relative_to(ROOT)))]
    print("\n".join(findings), end="\n" if findings else "")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
