import os
import tarfile
from pathlib import Path

import pytest

from tests import kept, shared, sources


class Runs:
    """Runs of pytest, one after the other, that keep archives in the same folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch, self._folder, self.made = monkeypatch, folder, 0
        self.archives = folder / "archives"
        self.archives.mkdir()
        monkeypatch.setenv(kept.VARIABLE, str(self.archives))

    def synthesised(self, name: str = "a stack") -> Path:
        """In the next run."""
        run = self._folder / f"run-{len(list(self._folder.iterdir()))}"
        run.mkdir()
        self._monkeypatch.setenv(shared.VARIABLE, str(run))
        return kept.synthesised(name, self._make)

    def _make(self, folder: Path) -> None:
        self.made += 1
        (folder / "asset").mkdir()
        (folder / "asset/index.py").write_text("code")
        (folder / "asset/index.py").chmod(0o750)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    return Runs(monkeypatch, tmp_path)


def test_a_later_run_has_the_same_files_without_making_them(runs: Runs) -> None:
    for _ in range(2):
        file = runs.synthesised() / "asset/index.py"
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("code", 0o750)
    assert runs.made == 1


def test_what_a_run_writes_into_its_files_no_other_sees(runs: Runs) -> None:
    (runs.synthesised() / "asset/index.py").write_text("spoiled")
    assert (runs.synthesised() / "asset/index.py").read_text() == "code"


def test_what_else_is_asked_for_is_made(runs: Runs) -> None:
    runs.synthesised()
    runs.synthesised("another stack")
    assert runs.made == 2


def test_what_other_sources_have_made_is_made_again(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.synthesised()
    monkeypatch.setattr(sources, "of_a_synthesis", lambda: "others")
    runs.synthesised()
    assert runs.made == 2


def test_nothing_is_kept_that_sources_made_which_changed_meanwhile(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "are_as_at_start", lambda: False)
    runs.synthesised()
    assert list(runs.archives.iterdir()) == []


def test_a_torn_archive_is_made_again(runs: Runs) -> None:
    runs.synthesised()
    (archive,) = runs.archives.iterdir()
    archive.write_bytes(archive.read_bytes()[:100])
    assert (runs.synthesised() / "asset/index.py").read_text() == "code"
    assert runs.made == 2
    with tarfile.open(archive) as packed:
        assert packed.getnames() == ["asset", "asset/index.py"]


def test_those_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for used_at, name in enumerate(("second", "first", "third")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (used_at, used_at))
    monkeypatch.setattr(kept, "MOST", 2)
    monkeypatch.setenv(kept.VARIABLE, "of this run")
    kept.begin(tmp_path)
    assert {archive.name for archive in tmp_path.iterdir()} == {"first", "third"}
