"""Parts of the job's wrapper for which no process is needed."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_wire.job import Job
from trn_job import checkpoints, command, inputs, logs
from trn_job.checkpoints import CheckpointError, Checkpoints
from trn_job.end import End
from trn_job.inputs import InputError
from trn_job.launch import Launch
from trn_job.progress import Compiling, Progress
from trn_job.results import Outputs
from trn_job.source import SourceError, unpack


class MemoryStore:
    """The objects of all jobs, in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def at(self, url: str) -> "MemoryStore":
        assert url in ("s3://records/jobs", "s3://data/tokens/")
        return self

    def read(self, key: str) -> Any:
        return self.objects.get(key)

    def write(self, key: str, content: Any) -> None:
        self.objects[key] = content

    def keys(self) -> list[str]:
        return list(self.objects)

    def create(self, key: str, content: Any) -> bool:
        return self.objects.setdefault(key, content) is content

    def upload(self, key: str, file: Path, digest: str = "") -> None:
        assert len(digest) == 64
        self.objects[key] = file.read_bytes()

    def download(self, key: str, file: Path) -> bool:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.objects.get(key, b""))
        return key in self.objects


def launch(rank: int = 0, nodes: int = 1, **spec: Any) -> Launch:
    return Launch(
        url="s3://records/jobs",
        spec=Job(**{"id": "job", "nodes": nodes, "processes_per_node": 1, "command": "true", **spec}),
        attempt=1,
        rank=rank,
        nodes=[{"instance_id": f"i-{k}", "address": f"10.0.0.{k}"} for k in range(nodes)],
        folder="/nowhere",
        resume_from="step-1",
        resume_job="job",
    )


# Ends


def test_the_first_failure_of_all_nodes_is_the_end() -> None:
    store: Any = MemoryStore()
    ends = [End(launch(rank, nodes=2), store) for rank in (0, 1)]
    for end, reason in zip(ends, ("bad batch", "connection closed by peer"), strict=True):
        end.declare("failed", reason)
    assert {end.content["reason"] for end in ends} == {"bad batch"}


# Progress


def test_rates_are_those_of_the_last_steps() -> None:
    at = iter([0.0, 0.5, 1.0])
    progress = Progress(lambda: next(at))
    for step in (10, 11, 12):
        progress.feed(0, f"12:00 TRN step={step} tokens=100 loss=2.{step} note=warm")
    as_record = progress.as_record()
    assert (as_record["step"], as_record["steps_per_second"], as_record["tokens_per_second"], as_record["note"]) == (
        12,
        2.0,
        200.0,
        "warm",
    )


def test_the_first_rank_that_prints_is_followed() -> None:
    progress = Progress()
    progress.feed(None, "TRN step=1")
    progress.feed(3, "TRN step=7")
    assert progress.as_record()["step"] == 1


@pytest.mark.parametrize("line", ["TRN", "STRN step=1", "TRN step", "the TRN step=1 is done", "TRN =1"])
def test_other_lines_are_no_progress(line: str) -> None:
    progress = Progress()
    progress.feed(0, line)
    assert progress.as_record() == {}


def test_a_loss_that_is_no_number_is_kept_as_text_so_that_json_holds_it() -> None:
    progress = Progress()
    progress.feed(0, "TRN step=1 loss=nan")
    assert progress.as_record()["loss"] == "nan"


# Compiling


def test_graphs_that_were_compiled_and_those_of_the_cache_are_counted() -> None:
    compiling = Compiling()
    assert compiling.counts() == {}
    for line in ("INFO ||NCC_WRAPPER||: Using a cached neff at /x/model.neff", "Compiler status PASS", "step 1"):
        compiling.feed(line)
    assert compiling.counts() == {"compiled": 1, "cached": 1}


# Log


def test_a_log_goes_in_parts_of_bounded_size_and_loses_no_line() -> None:
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


def test_a_log_that_s3_does_not_take_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 20)
    parts: list[bytes] = []
    log = logs.Log(lambda _number, text: parts.append(text))
    for number in range(5):
        log.add(None, f"line {number}")
    log.send()
    log.add(None, "last")
    log.send()
    assert parts == [b"line 0\nline 1\n", b"[trn] 3 lines were dropped\nlast\n"]


# Inputs


@pytest.mark.parametrize("key", ["../words", "first/../../words", "/etc/words"])
def test_no_input_leaves_its_folder(tmp_path: Path, key: str) -> None:
    store: Any = MemoryStore()
    store.objects[key] = b""
    with pytest.raises(InputError, match=rf"^the input tokens: s3://data/tokens/{key} would be outside its folder$"):
        inputs.download({"tokens": "s3://data/tokens/"}, store, tmp_path / "inputs")


def test_a_part_of_an_input_that_is_deleted_meanwhile_is_missed(tmp_path: Path) -> None:
    store: Any = MemoryStore()
    store.keys = lambda: ["words"]
    with pytest.raises(InputError, match=r"s3://data/tokens/words was deleted meanwhile$"):
        inputs.download({"tokens": "s3://data/tokens/"}, store, tmp_path / "inputs")


# Results


def test_refused_outputs_keep_no_others_from_being_stored(tmp_path: Path) -> None:
    store: Any = MemoryStore()
    tried: list[str] = []

    def upload(key: str, file: Path) -> None:
        tried.append(key)
        if "bad" in key:
            raise OSError("S3 does not answer")
        store.objects[key] = file.read_bytes()

    store.upload = upload
    for name in ("good", *(f"bad-{number}" for number in range(5))):
        (tmp_path / name).write_text("x")
    outputs = Outputs(launch(), store, tmp_path)
    for _ in range(2):
        with pytest.raises(OSError, match=r"files, the first: S3 does not answer$"):
            outputs.upload()
    assert list(store.objects) == ["job/outputs/good"]
    assert set(tried) == {"job/outputs/good", *(f"job/outputs/bad-{number}" for number in range(5))}


# Source


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


def test_a_source_is_unpacked_with_its_folders_links_and_modes(tmp_path: Path) -> None:
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
        [link("hard", "/etc/passwd", tarfile.LNKTYPE)],
        [link("device", "", tarfile.CHRTYPE)],
    ],
    ids=["parent", "absolute", "absolute link", "link to a parent", "hard link", "device"],
)
def test_nothing_of_a_source_leaves_its_folder(members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the packed source holds"):
        unpack(packed(tmp_path, *members), tmp_path / "source")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    members = [link("folder", "elsewhere"), (tarfile.TarInfo("folder/file"), b"x")]
    with pytest.raises((SourceError, OSError)):
        unpack(packed(tmp_path, *members), tmp_path / "source")


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00broken"], ids=["empty", "other", "broken"])
def test_a_source_that_cannot_be_read_is_reported(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "source.tar.gz").write_bytes(content)
    with pytest.raises(SourceError, match="the packed source cannot be read"):
        unpack(tmp_path / "source.tar.gz", tmp_path / "source")


# Checkpoints


def save(folder: Path, name: str, **files: str) -> None:
    for file, text in (files or {"model": "weights"}).items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class SavingNodes:
    """The folders of checkpoints of a job's nodes. said: what the log has of them."""

    def __init__(self, folder: Path, nodes: int, **spec: Any) -> None:
        self.store, self.folder, self.said = MemoryStore(), folder, list[str]()
        store: Any = self.store
        self.launches = [launch(rank, nodes, **spec) for rank in range(nodes)]
        self.nodes = [Checkpoints(one, store, self.place(one.rank), self.said.append) for one in self.launches]

    def place(self, rank: int) -> Path:
        place = self.folder / f"node-{rank}"
        place.mkdir(exist_ok=True)
        return place

    def save(self, name: str, *ranks: int) -> None:
        for rank in ranks:
            save(self.place(rank), name, **{"meta": f"of {rank}", f"shard_{rank}": f"weights {rank}"})

    def look(self, *ranks: int, state: str = "running", looked: float | None = None) -> None:
        """Let nodes look at their folders and write their records, by default all, node 0 the last."""
        for rank in reversed(ranks or range(len(self.nodes))):
            self.nodes[rank].upload()
            told = self.nodes[rank].as_record()
            self.store.objects[self.launches[rank].keys.node(rank)] = {
                "state": state,
                "checkpoints": {**told, "looked": told["looked"] if looked is None else looked},
            }

    @property
    def whole(self) -> dict[str, list[str]]:
        """The parts of what has a manifest."""
        prefix, found = "job/checkpoints/", {}
        for key, content in self.store.objects.items():
            if key.startswith(prefix) and "/" not in key.removeprefix(prefix):
                found[content["name"]] = content["parts"]
        return found

    def resumed(self, name: str, rank: int, **spec: Any) -> dict[str, str]:
        """The files that a node gets."""
        folder = self.folder / f"resumed-{rank}-{len(spec)}"
        store: Any = self.store
        resuming = launch(rank, len(self.nodes), **spec)._replace(resume_from=name)
        place = checkpoints.download(resuming, store, folder)
        return {str(file.relative_to(place)): file.read_text() for file in place.rglob("*") if file.is_file()}


LATER = 1e12
"""A look after everything."""


def test_a_manifest_comes_after_the_files_and_names_their_parts(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.nodes[0].upload()
    files = [
        "job/checkpoints/step-1/1-0-1/step-1/model",
        "job/checkpoints/step-1/1-0-1.json",
        "job/checkpoints/step-1.json",
    ]
    assert list(nodes.store.objects) == files
    manifest = nodes.store.objects["job/checkpoints/step-1.json"]
    assert (manifest["name"], manifest["world_size"], manifest["nodes"], manifest["parts"]) == (
        "step-1",
        1,
        1,
        ["1-0-1"],
    )


def test_an_upload_that_breaks_off_leaves_no_manifest_and_is_made_again(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1")
    upload = store.upload

    def refuse(*_: object) -> None:
        raise OSError("refused")

    store.upload = refuse
    with pytest.raises(OSError, match="refused"):
        nodes.nodes[0].upload()
    assert store.objects == {}
    store.upload = upload
    nodes.nodes[0].upload()
    assert nodes.whole == {"step-1": ["1-0-1"]}


def test_what_changes_while_it_is_stored_gets_no_manifest(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    store: Any = nodes.store
    save(nodes.place(0), "step-1")
    upload = store.upload

    def change(key: str, file: Path, digest: str) -> None:
        upload(key, file, digest)
        file.write_text("other weights")

    store.upload = change
    nodes.nodes[0].upload()
    assert nodes.whole == {}


def test_a_checkpoint_that_is_saved_again_leaves_the_stored_one_alone(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    for text in ("first", "second one"):
        (nodes.place(0) / "latest.pt").write_text(text)
        nodes.nodes[0].upload()
    assert nodes.store.objects["job/checkpoints/latest.pt/1-0-1/latest.pt"] == b"first"
    store: Any = nodes.store
    resumed = checkpoints.download(launch()._replace(resume_from="latest.pt"), store, tmp_path / "resume")
    assert (resumed, resumed.read_text()) == (tmp_path / "resume/latest.pt", "second one")


def test_a_file_that_is_not_the_one_that_was_saved_is_never_resumed_from(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.nodes[0].upload()
    nodes.store.objects["job/checkpoints/step-1/1-0-1/step-1/model"] = b"torn"
    with pytest.raises(CheckpointError, match="the file step-1/model of checkpoint step-1 of job job is not the one"):
        nodes.resumed("step-1", 0)


@pytest.mark.parametrize("path", ["..", "../elsewhere", "/etc/cron.d", "step-1/../../x", "other/model"])
def test_no_file_of_a_checkpoint_leaves_its_folder(tmp_path: Path, path: str) -> None:
    nodes = SavingNodes(tmp_path, 1)
    save(nodes.place(0), "step-1")
    nodes.nodes[0].upload()
    nodes.store.objects["job/checkpoints/step-1/1-0-1.json"]["files"] = {path: {"size": 1, "sha256": ""}}
    with pytest.raises(CheckpointError, match="lacks its file"):
        nodes.resumed("step-1", 0)


def test_a_checkpoint_without_manifest_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no complete checkpoint step-1 of job job"):
        SavingNodes(tmp_path, 1).resumed("step-1", 0)


def test_a_sharded_checkpoint_is_complete_with_the_parts_of_all_nodes(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 3)
    nodes.save("step-1", 0, 1)
    save(nodes.place(2), "step-1.tmp")
    nodes.look(looked=LATER)
    assert nodes.whole == {}
    nodes.save("step-1", 2)
    nodes.look(looked=LATER)
    assert nodes.whole == {"step-1": ["1-0-1", "1-1-1", "1-2-1"]}


def test_a_node_that_has_not_looked_since_may_still_save_its_part(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.look()
    nodes.save("step-1", 0)
    nodes.look(0)
    assert nodes.whole == {}
    nodes.look(looked=LATER)
    assert nodes.whole == {"step-1": ["1-0-1"]}


def test_a_node_without_a_record_leaves_a_checkpoint_incomplete(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0)
    nodes.look(0)
    nodes.nodes[0].await_parts(lambda: True)
    assert nodes.whole == {}
    assert nodes.said == ["checkpoint step-1 is not complete: parts of other nodes are missing"]


def test_a_node_that_has_ended_saves_nothing_more(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.look(1, state="ended")
    nodes.save("step-1", 0)
    nodes.look(0)
    assert nodes.whole == {"step-1": ["1-0-1"]}


def test_parts_of_a_name_that_is_saved_again_are_not_mixed(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("latest", 0, 1)
    nodes.look(1)
    save(nodes.place(1), "latest", shard_1="of a later step")
    nodes.look(looked=LATER)
    assert nodes.whole == {}
    nodes.nodes[0].complete_all()
    assert nodes.whole == {"latest": ["1-0-1", "1-1-2"]}


def test_checkpoints_of_each_node_under_its_own_name_are_all_kept(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    for rank in (0, 1):
        nodes.save(f"rank-{rank}", rank)
    nodes.look(looked=LATER)
    assert nodes.whole == {}
    nodes.nodes[0].complete_all()
    assert nodes.whole == {"rank-0": ["1-0-1"], "rank-1": ["1-1-1"]}


def test_a_shard_that_was_deleted_before_it_was_stored_is_missed(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-2", 0, 1)
    nodes.look(looked=LATER)
    nodes.save("step-1", 0)
    nodes.look(looked=LATER)
    nodes.nodes[0].complete_all()
    assert list(nodes.whole) == ["step-2"]
    assert nodes.said == ["checkpoint step-1 is not complete: node 1 has no part of it"]


@pytest.mark.parametrize(
    ("resume_files", "files"),
    [("all", {"meta", "shard_0", "shard_1", "shard_2"}), ("own", {"meta", "shard_0", "shard_1"})],
)
def test_a_node_resumes_from_all_shards_or_its_own(tmp_path: Path, resume_files: str, files: set[str]) -> None:
    nodes = SavingNodes(tmp_path, 3)
    nodes.save("step-1", 0, 1, 2)
    nodes.look(looked=LATER)
    found = nodes.resumed("step-1", 1, resume_files=resume_files)
    assert found.keys() == files
    assert found["meta"] == "of 1"


def test_a_shard_that_is_gone_is_named(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    nodes.look(looked=LATER)
    del nodes.store.objects["job/checkpoints/step-1/1-1-1.json"]
    with pytest.raises(CheckpointError, match="checkpoint step-1 of job job lacks the part of node 1"):
        nodes.resumed("step-1", 0)


def test_the_checkpoint_that_a_job_resumes_from_is_not_stored_again(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    for rank in (0, 1):
        nodes.nodes[rank].add_resumed(nodes.place(rank) / "step-1")
    nodes.look(looked=LATER)
    assert (nodes.whole, nodes.nodes[1].as_record()["holds"]) == ({}, False)
    nodes.save("step-2", 0)
    nodes.look(looked=LATER)
    assert nodes.whole == {"step-2": ["1-0-1"]}


@given(
    before=st.integers(0, 40),
    secrets=st.lists(st.text("ab", min_size=4, max_size=12), min_size=1, max_size=3),
    after=st.integers(40, 60),
)
def test_a_line_that_is_too_long_is_divided_outside_of_secrets(before: int, secrets: list[str], after: int) -> None:
    line = b"." * before + "".join(secrets).encode() + b"." * after
    texts = [secret.encode() for secret in secrets]
    end = command.end_of_part(line, 40, texts)
    assert 0 < end <= 40
    for text in texts:
        assert all(not at < end < at + len(text) for at in range(len(line)) if line.startswith(text, at))
