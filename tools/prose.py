"""Finds the phrases in tools/prose.toml in every text of the repository: a step of `make lint`."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_SUFFIXES = (".py", ".md", ".toml", ".j2", ".sh", ".yml")
_NOT_OURS = ("CHANGELOG.md", "tools/prose.toml", "examples/lm/NOTICE.md")


def texts() -> Iterator[Path]:
    """The text files of the repository, as git lists them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        if name.endswith(_SUFFIXES) and name not in _NOT_OURS and (ROOT / name).is_file():
            yield ROOT / name


def findings() -> Iterator[str]:
    """Each habit as `file:line: words: what to write`."""
    habits = tomllib.loads((ROOT / "tools/prose.toml").read_text())["habit"]
    patterns = [(re.compile(one["pattern"], re.IGNORECASE), one["write"], one.get("allowed", {})) for one in habits]
    for path in texts():
        name = str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, write, allowed in patterns:
                found = pattern.search(line)
                if found and name not in allowed:
                    yield f"{name}:{number}: {found[0]!r}: write {write}"


def main() -> None:
    """Print every finding. Exit code 1 if there is one."""
    found = [*findings()]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
