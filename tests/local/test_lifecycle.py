"""Start, status and stop of the background process, and what can prevent them."""

import errno
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from trainium_local import lifecycle
from trainium_local.lifecycle import LocalError
from trainium_local.server import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder whose server is stopped after the tests of this module."""
    folder = tmp_path_factory.mktemp("home")
    yield folder
    lifecycle.stop(folder)


def test_state_folder_is_the_named_or_the_users() -> None:
    assert lifecycle.home({"TRN_LOCAL_HOME": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}) == Path("/a")
    assert lifecycle.home({"XDG_STATE_HOME": "/b", "HOME": "/c"}) == Path("/b/trn")
    assert lifecycle.home({"HOME": "/c"}) == Path("/c/.local/state/trn")


def test_started_server_has_its_settings_and_is_found_again(tmp_path: Path) -> None:
    started = lifecycle.start(tmp_path, Settings(region="us-east-2", quotas={"L-2C3B7624": 384}))
    try:
        assert not started.already
        assert (started.health.region, started.health.quotas["L-2C3B7624"]) == ("us-east-2", 384)
        again = lifecycle.start(tmp_path, Settings())
        assert (again.already, again.health) == (True, started.health)
        assert lifecycle.status(tmp_path) == started.health
    finally:
        lifecycle.stop(tmp_path)


def test_files_of_server_are_private_and_stop_ends_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    pid = lifecycle.start(tmp_path, Settings()).health.pid
    try:
        assert {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path, *tmp_path.iterdir())} == {
            tmp_path.name: "0o700",
            "server.json": "0o600",
            "server.log": "0o600",
            "lock": "0o600",
        }
    finally:
        stopped = lifecycle.stop(tmp_path)
    assert stopped is not None
    assert stopped.pid == pid
    assert lifecycle.status(tmp_path) is None
    assert lifecycle.stop(tmp_path) is None


def test_state_file_of_another_start_is_stale(folder: Path, tmp_path: Path) -> None:
    connection = lifecycle.start(folder, Settings()).connection
    others = replace(connection.credentials, secret_access_key="of another start")
    replace(connection, credentials=others).write(tmp_path / "server.json")
    assert lifecycle.status(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_damaged_state_file_means_not_running(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.json").write_text(text)
    (tmp_path / "server.json").chmod(0o600)
    assert lifecycle.status(tmp_path) is None


def test_unusable_port_is_not_called_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_address: tuple[str, int]) -> socket.socket:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(lifecycle.socket, "create_server", refuse)
    with pytest.raises(LocalError, match=r"^port 80 cannot be used \(Permission denied\)\. "):
        lifecycle.start(tmp_path, Settings(port=80))


def test_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalError, match=f"port {port} is taken by another program"):
            lifecycle.start(tmp_path, Settings(port=port))


def test_failed_start_shows_the_end_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such module\nexit 3\n")
    python.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(python))
    with pytest.raises(LocalError, match=r"\(exit code 3\)\.\nno such module"):
        lifecycle.start(tmp_path, Settings())


def test_folder_writable_by_others_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with pytest.raises(LocalError, match=f"Run `chmod 700 {tmp_path}`"):
        lifecycle.start(tmp_path, Settings())


def test_state_file_readable_by_others_is_ignored(folder: Path, tmp_path: Path) -> None:
    lifecycle.start(folder, Settings()).connection.write(tmp_path / "server.json")
    assert lifecycle.status(tmp_path) is not None
    (tmp_path / "server.json").chmod(0o604)
    assert lifecycle.status(tmp_path) is None


def test_secret_is_in_no_argument_log_or_health(folder: Path) -> None:
    started = lifecycle.start(folder, Settings())
    keys = started.connection.credentials
    process = Path(f"/proc/{started.health.pid}")
    shown = [process / "cmdline", process / "environ", Path(started.health.log)]
    texts = [file.read_bytes().decode(errors="replace") for file in shown] + [started.health.to_json()]
    assert not [text for text in texts if keys.secret_access_key in text or keys.access_key_id in text]
