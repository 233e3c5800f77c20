"""Modules of trn_job that need no process."""

import gzip
import io
import os
import tarfile
import threading
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.nasty_names import NASTY_NAMES
from tests.userdata.job_parts import MemoryStore, launch
from trainium_core.jobs.source_package import pack_directory
from trn_job import __main__, command, inputs, logs
from trn_job.end import End
from trn_job.inputs import InputError
from trn_job.peers import already_succeeded
from trn_job.periodic_thread import PeriodicThread
from trn_job.progress import MAX_KEYS, Compiling, RankProgress
from trn_job.source import SourceError, unpack
from trn_node.job_attempts import unready
from trn_node.objects import Object

# Launch.


def test_invalid_launch_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "launch.json"
    file.write_text("{}")
    assert __main__.main([str(file)]) == 2
    assert capsys.readouterr().err == f"trn_job: {file} is not a valid launch file: KeyError: 'spec'\n"


def test_launch_file_that_is_not_an_object_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "launch.json"
    file.write_text("null")
    assert __main__.main([str(file)]) == 2
    assert capsys.readouterr().err.endswith("is not a valid launch file: TypeError: it is not a JSON object\n")


# Ends.


def test_first_failure_on_any_node_is_the_reason_for_all() -> None:
    store: Any = MemoryStore()
    ends = [End(launch(rank, nodes=2), store) for rank in (0, 1)]
    for end, reason in zip(ends, ("bad batch", "connection closed by peer"), strict=True):
        end.declare("failed", reason)
    assert {end.content["reason"] for end in ends} == {"bad batch"}


# Progress.


def test_rates_are_those_of_the_last_steps() -> None:
    at = iter([0.0, 0.5, 1.0])
    progress = RankProgress(lambda: next(at))
    for step in (10, 11, 12):
        progress.feed(0, f"12:00 TRN step={step} tokens=100 loss=2.{step} note=warm")
    as_record = progress.as_record()
    assert (as_record["step"], as_record["steps_per_second"], as_record["tokens_per_second"], as_record["note"]) == (
        12,
        2.0,
        200.0,
        "warm",
    )


def test_first_rank_that_prints_is_followed() -> None:
    progress = RankProgress()
    progress.feed(None, "TRN step=1")
    progress.feed(3, "TRN step=7")
    assert progress.as_record()["step"] == 1


def test_progress_after_compiler_dots_counts() -> None:
    progress = RankProgress()
    progress.feed(0, "...TRN step=1")
    assert progress.as_record()["step"] == 1


def test_last_values_of_many_keys_are_kept() -> None:
    progress = RankProgress()
    for step in (1, 2):
        progress.feed(0, f"TRN step={step} " + " ".join(f"key{number}={step}" for number in range(MAX_KEYS - 1)))
    record = progress.as_record()
    assert {record[f"key{number}"] for number in range(MAX_KEYS - 1)} == {"2"}


def test_keys_of_progress_are_limited() -> None:
    progress = RankProgress()
    for _ in range(2):
        progress.feed(0, "TRN " + " ".join(f"key{number}=1" for number in range(MAX_KEYS + 1)))
    assert {*progress.as_record()} == {*(f"key{number}" for number in range(MAX_KEYS)), "last_at"}


@pytest.mark.parametrize(
    ("block", "is_sign_of_life"),
    [
        (b".", True),
        (b"\r 12%", True),
        (b"\n", True),
        (b"[rank 1] INFO: Another process must be compiling /x\n", False),
        (b"Another process must be compiling /x\n[rank 2] step 1\n", True),
    ],
    ids=["dot", "bar", "line", "waits", "waits and steps"],
)
def test_output_is_a_sign_of_life_except_while_waiting_for_a_lock(block: bytes, is_sign_of_life: bool) -> None:
    assert command.shows_life(block) == is_sign_of_life


@pytest.mark.parametrize("line", ["TRN", "STRN step=1", "TRN step", "the TRN step=1 is done", "TRN =1"])
def test_other_lines_are_not_progress(line: str) -> None:
    progress = RankProgress()
    progress.feed(0, line)
    assert progress.as_record() == {}


def test_non_finite_loss_is_kept_as_text_for_json() -> None:
    progress = RankProgress()
    progress.feed(0, "TRN step=1 loss=nan")
    assert progress.as_record()["loss"] == "nan"


# Compilation.


def test_compiled_and_cached_graphs_are_counted() -> None:
    compiling = Compiling()
    assert compiling.counts() == {}
    for line in ("INFO ||NCC_WRAPPER||: Using a cached neff at /x/model.neff", "Compiler status PASS", "step 1"):
        compiling.feed(line)
    assert compiling.counts() == {"compiled": 1, "cached": 1}


# Log.


def test_log_is_split_into_bounded_parts_without_loss() -> None:
    parts: list[bytes] = []
    log = logs.Log(lambda number, text: parts.insert(number, text))
    for number in range(30):
        log.add(number, "x" * (logs.PART_BYTES // 10))
    log.send()
    assert max(map(len, parts)) <= logs.PART_BYTES
    assert b"".join(parts).count(b"\n") == 30


def test_log_part_that_s3_refuses_is_sent_later() -> None:
    sent: list[bytes] = []
    failing = [True]

    def send(_number: int, text: bytes) -> None:
        if failing:
            raise OSError("refused")
        sent.append(text)

    log = logs.Log(send)
    log.add(None, "first")
    with pytest.raises(OSError, match="refused"):
        log.send()
    failing.clear()
    log.add(1, "second")
    log.send()
    assert sent == [b"first\n[rank 1] second\n"]


def test_log_that_s3_refuses_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 20)
    parts: list[bytes] = []
    log = logs.Log(lambda _number, text: parts.append(text))
    for number in range(5):
        log.add(None, f"line {number}")
    log.send()
    log.add(None, "last")
    log.send()
    assert parts == [
        b"line 0\nline 1\n",
        b"[trn] lines dropped while S3 did not store the log: 3\n",
        b"last\n",
    ]


# Inputs.


@pytest.mark.parametrize("key", ["../words", "first/../../words", "/etc/words"])
def test_inputs_stay_in_their_folder(tmp_path: Path, key: str) -> None:
    store: Any = MemoryStore()
    store.objects[key] = b""
    with pytest.raises(InputError, match=rf"^the input tokens: s3://data/tokens/{key} would be outside its folder$"):
        inputs.download({"tokens": "s3://data/tokens/"}, store, tmp_path / "inputs")


def test_inputs_with_one_path_are_refused(tmp_path: Path) -> None:
    store: Any = MemoryStore()
    store.objects |= {"a/b": b"", "a//b": b""}
    with pytest.raises(InputError, match=r"s3://data/tokens/a//b and s3://data/tokens/a/b would be the same file$"):
        inputs.download({"tokens": "s3://data/tokens/"}, store, tmp_path / "inputs")


def test_input_file_deleted_during_download_is_reported(tmp_path: Path) -> None:
    store: Any = MemoryStore()
    store.keys = lambda: ["words"]
    with pytest.raises(InputError, match=r"s3://data/tokens/words was deleted in the meantime$"):
        inputs.download({"tokens": "s3://data/tokens/"}, store, tmp_path / "inputs")


# Source.


def packed(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    file = folder / "source.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def test_packed_names_are_kept(tmp_path: Path) -> None:
    names = [*map(os.fsencode, NASTY_NAMES), b"bad\xff"]
    for name in names:
        file = tmp_path / "from" / os.fsdecode(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name)
    (tmp_path / "archive").write_bytes(pack_directory(tmp_path / "from").archive)
    unpack(tmp_path / "archive", tmp_path / "to")
    assert {name: (tmp_path / "to" / os.fsdecode(name)).read_bytes() for name in names} == {
        name: name for name in names
    }


def test_source_is_unpacked_with_folders_links_and_modes(tmp_path: Path) -> None:
    program = tarfile.TarInfo("bin/run.sh")
    program.mode = 0o4775
    unpack(packed(tmp_path, (program, b"run"), link("current", "bin/run.sh")), tmp_path / "source")
    assert (tmp_path / "source/current").read_text() == "run"
    assert (tmp_path / "source/bin/run.sh").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "members",
    [
        [(tarfile.TarInfo("../escaped"), b"x")],
        [(tarfile.TarInfo("/tmp/escaped"), b"x")],
        [link("out", "/etc")],
        [link("out", "../..")],
        [link("x/y/z/d", "../../../s"), link("x/y/z/d/e", "../../../../secret")],
        [link("x/b", "../y"), link("x/a", "b/../../s")],
        [link("hard", "/etc/passwd", tarfile.LNKTYPE)],
        [link("device", "", tarfile.CHRTYPE)],
    ],
    ids=[
        "parent",
        "absolute",
        "absolute link",
        "link to a parent",
        "below a link",
        "through a link",
        "hard link",
        "device",
    ],
)
def test_source_files_stay_in_their_folder(members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the packed source holds"):
        unpack(packed(tmp_path, *members), tmp_path / "source")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    members = [link("folder", "elsewhere"), (tarfile.TarInfo("folder/file"), b"x")]
    with pytest.raises((SourceError, OSError)):
        unpack(packed(tmp_path, *members), tmp_path / "source")


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00broken"], ids=["empty", "other", "broken"])
def test_unreadable_source_is_reported(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "source.tar.gz").write_bytes(content)
    with pytest.raises(SourceError, match="the packed source cannot be read"):
        unpack(tmp_path / "source.tar.gz", tmp_path / "source")


def test_damaged_source_is_reported(tmp_path: Path) -> None:
    archive = packed(tmp_path, (tarfile.TarInfo("words"), b"x" * 100_000))
    compress = zlib.compressobj(wbits=31)
    start = compress.compress(gzip.decompress(archive.read_bytes())[:50_000]) + compress.flush(zlib.Z_SYNC_FLUSH)
    # A block of an invalid type.
    archive.write_bytes(start + b"\x07")
    with pytest.raises(SourceError, match="the packed source cannot be read: Error -3"):
        unpack(archive, tmp_path / "source")


def test_source_with_a_wrong_checksum_is_reported(tmp_path: Path) -> None:
    archive = packed(tmp_path, (tarfile.TarInfo("words"), b"x" * 100_000))
    content = gzip.decompress(archive.read_bytes())
    # Two members of gzip, because tarfile does not read the checksum after the end of the archive.
    start = bytearray(gzip.compress(content[:50_000]))
    start[-8] ^= 0xFF
    archive.write_bytes(start + gzip.compress(content[50_000:]))
    with pytest.raises(SourceError, match="the packed source cannot be read: CRC check failed"):
        unpack(archive, tmp_path / "source")


class _Records:
    """A store in which nodes 1 and 3 have succeeded, and node 2 has no record."""

    def read(self, key: str) -> dict[str, str] | None:
        return {"node-1": {"state": "succeeded"}, "node-3": {"state": "succeeded"}}.get(key)


def test_nodes_that_succeeded_before_a_hang_are_named() -> None:
    launch: Any = SimpleNamespace(nodes=[None] * 4, keys=SimpleNamespace(node="node-{}".format))
    store: Any = _Records()
    assert already_succeeded(launch, store) == "; already succeeded: nodes 1, 3"


def test_periodic_thread_is_stopped_once_its_current_call_has_ended() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(60)

    thread = PeriodicThread("record", work, lambda: 60)
    thread.start()
    assert begun.wait(60)
    stopping = threading.Thread(target=thread.stop)
    stopping.start()
    stopping.join(0.2)
    assert stopping.is_alive()
    may_end.set()
    stopping.join(60)
    assert not stopping.is_alive()
    assert not thread.is_alive()


@pytest.mark.parametrize(("age", "missing"), [(15, []), (16, ["i-b"])])
def test_statement_of_a_node_that_was_lost_since_is_not_valid(age: int, missing: list[str]) -> None:
    times = {"i-a": 30, "i-b": 30 - age}
    found = [
        Object(f"ready/{name}.json", f"2026-11-28T12:00:{second:02}.500Z", 2, "") for name, second in times.items()
    ]
    assert unready(found, ["i-a", "i-b"]) == missing
    assert unready(found, ["i-c"]) == ["i-c"]
