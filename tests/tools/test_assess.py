"""The tool that measures how often `trn assess` is right."""

import subprocess
from pathlib import Path

from tools.assess.__main__ import CodeBase, check_out


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_existing_checkout_of_another_commit_is_updated(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet")
    commits = list[str]()
    for text in ("first", "second"):
        (repository / "a.py").write_text(text)
        git(repository, "add", "a.py")
        git(repository, "commit", "--quiet", "--message", text)
        commits.append(git(repository, "rev-parse", "HEAD"))
    for commit, text in zip(commits, ("first", "second"), strict=True):
        base = CodeBase(
            name="base", repository=str(repository), commit=commit, license="MIT", paths=["."], places=frozenset()
        )
        assert (check_out(base, tmp_path / "checkouts") / "a.py").read_text() == text
