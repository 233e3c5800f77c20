"""The results of an attempt in S3: checkpoints and outputs. Wrappers run for real; S3 is a stand-in."""

import time
from typing import Any
from urllib.parse import quote

import pytest

from tests.nasty_names import NASTY_NAMES
from tests.userdata.job_nodes import JobNodes
from tests.userdata.node_files import BUCKET, JOB, TIMEOUT_SECONDS
from trainium_wire.job import RESULTS_LOST_CODE

LEAVES_RESULTS = (
    "import os\n"
    "open(os.environ['TRN_OUTPUT_DIR'] + '/result', 'w').write('1')\n"
    "open(os.environ['TRN_CHECKPOINT_DIR'] + '/step-1', 'w').write('1')\n"
)


@pytest.mark.parametrize("kind", ["outputs", "checkpoints"])
def test_results_are_stored_once_s3_is_available_again(nodes: JobNodes, kind: str) -> None:
    refused = 0

    def status(name: str) -> int:
        nonlocal refused
        refused += f"/{kind}/" in name
        return 503 if f"/{kind}/" in name and refused <= 16 else 200

    nodes.aws.put_status = status
    nodes.start(LEAVES_RESULTS)
    assert nodes.wait() == [0]
    assert nodes.end["result"] == "succeeded"
    assert {f"{BUCKET}/jobs/{JOB}/outputs/result", f"{BUCKET}/jobs/{JOB}/checkpoints/step-1.json"} <= set(
        nodes.aws.records
    )


@pytest.mark.parametrize(("status", "limit"), [(503, "results"), (403, "refused")])
@pytest.mark.parametrize("kind", ["outputs", "checkpoints"])
def test_results_that_never_reach_s3_are_lost_and_stay_on_the_node(
    nodes: JobNodes, kind: str, status: int, limit: str
) -> None:
    nodes.aws.put_status = lambda name: status if f"/{kind}/" in name else 200
    nodes.start(LEAVES_RESULTS, timing={limit: 0})
    assert nodes.wait() == [RESULTS_LOST_CODE]
    end = nodes.end
    assert (end["result"], end["exit_code"], nodes.record()["state"]) == ("results-lost", 0, "results-lost")
    place = nodes.place(0)
    verb = "refuses" if status == 403 else "is unavailable for"
    assert end["reason"].startswith(
        f"node 0 (i-0): not in S3, but kept on the node in {place}: {kind}: S3 {verb} PUT s3://"
    )
    assert nodes.record()["lost"] == end["reason"].partition(": ")[2]
    assert (place / kind).is_dir()


def test_unexpected_error_of_the_program_has_the_exit_code_of_lost_results(nodes: JobNodes) -> None:
    nodes.start(LEAVES_RESULTS)
    assert nodes.wait() == [0]
    launch = nodes.folder / "launch-1-0.json"
    launch.write_text(launch.read_text().replace("127.0.0.2", "192.0.2.1"))
    assert nodes.wrapper(launch).wait(TIMEOUT_SECONDS) == RESULTS_LOST_CODE
    assert "Cannot assign requested address" in launch.with_suffix(".out").read_text()


WRITES_NAMES = """
import os, pathlib, sys
resumed, names = os.environ.get("TRN_RESUME_FROM"), pathlib.Path("names").read_bytes().decode().split("\\0")
for folder in ("data", os.environ["TRN_INPUT_DIR"] + "/data", *([resumed] if resumed else [])):
    for name in names:
        assert pathlib.Path(folder, name).read_bytes() == name.encode(), (folder, name)
for folder in (os.environ["TRN_OUTPUT_DIR"], os.environ["TRN_CHECKPOINT_DIR"] + "/step #1?"):
    for name in names:
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
"""


def test_names_are_kept_in_source_inputs_outputs_and_checkpoints(nodes: JobNodes) -> None:
    keys = {name: quote(name, safe="/-_.~") for name in NASTY_NAMES}
    files = {"names": "\0".join(NASTY_NAMES), **{f"data/{name}": name for name in NASTY_NAMES}}
    for name, key in keys.items():
        nodes.aws.records[f"data/x%23/{key}"] = name
    resumes: list[dict[str, Any]] = [{}, {"resume_from": "step #1?", "resume_job": JOB}]
    for resume in resumes:
        nodes.start(WRITES_NAMES, files=files, inputs={"data": "s3://data/x#/"}, **resume)
        assert nodes.wait() == [0], nodes.log()
        nodes.next_attempt()
    stored = {key: nodes.aws.records.get(f"{BUCKET}/jobs/{JOB}/outputs/{key}") for key in keys.values()}
    assert stored == {key: name for name, key in keys.items()}


LEAVES_WHAT_S3_CANNOT_STORE = """
import os, pathlib, socket
folder = pathlib.Path(os.environ["TRN_OUTPUT_DIR"])
(folder / "blobs").mkdir()
(folder / "blobs/1").write_text("weights")
(folder / "snapshot").mkdir()
(folder / "snapshot/model.bin").symlink_to("../blobs/1")
(folder / "latest").symlink_to(folder / "snapshot")
(folder / "passwd").symlink_to("/etc/passwd")
open(os.fsencode(folder) + b"/b\\xff", "w").close()
socket.socket(socket.AF_UNIX).bind(str(folder / "run.sock"))
(folder / "z").write_text("last")
"""


def test_what_cannot_be_stored_is_named_and_is_no_success(nodes: JobNodes) -> None:
    nodes.start(LEAVES_WHAT_S3_CANNOT_STORE)
    assert nodes.wait() == [RESULTS_LOST_CODE]
    assert nodes.end["result"] == "results-lost"
    named = "b\\xff (its name is not UTF-8), passwd (a link to /etc/passwd, outside the folder), run.sock (a socket)"
    assert nodes.end["reason"].endswith(f"{nodes.place(0)}: outputs: {named}")
    assert r"outputs: b\xff is not stored: its name is not UTF-8" in nodes.log()
    prefix = f"{BUCKET}/jobs/{JOB}/outputs/"
    assert {key.removeprefix(prefix) for key in nodes.aws.records if key.startswith(prefix)} == {"blobs/1", "z"}
    links = {"latest": "snapshot", "snapshot/model.bin": "../blobs/1"}
    assert nodes.content("attempts/outputs/0.json") == {"files": ["blobs/1", "z"], "links": links}


APPENDS = """
import os, pathlib, time
folder, attempt = pathlib.Path(os.environ["TRN_OUTPUT_DIR"]), os.environ["TRN_ATTEMPT"]
other = folder.parents[1] / ("first-node-has-written-" + attempt)
while os.environ["TRN_NODE_RANK"] == "1" and not other.exists():
    time.sleep(0.05)
for file in (folder / "metrics.csv", folder / "latest/log", pathlib.Path("out/log"), pathlib.Path("../results/log")):
    if attempt == "1" and file.parent.name == "latest":
        (folder / "run-1").mkdir()
        (folder / "latest").symlink_to("run-1")
    file.parent.mkdir(exist_ok=True)
    if attempt != "2" or file.name != "metrics.csv":
        with file.open("a") as out:
            out.write(attempt)
(folder / "latest").unlink()
(folder / "latest").symlink_to("run-1")
pathlib.Path("newest").is_symlink() or pathlib.Path("newest").symlink_to("out")
if os.environ["TRN_NODE_RANK"] == "1" and attempt != "3":
    raise SystemExit(75)
other.touch()
"""


SAVES_LINKS = """
import os, pathlib
folder, resumed = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"]), os.environ.get("TRN_RESUME_FROM")
if resumed:
    print("resumes", (folder / "latest/model.bin").read_text(), os.readlink(folder / "latest"), flush=True)
else:
    (folder / ".new/blobs").mkdir(parents=True)
    (folder / ".new/blobs/1").write_text("weights")
    (folder / ".new/model.bin").symlink_to("blobs/1")
    (folder / ".new").rename(folder / "step-1")
    (folder / "latest").symlink_to("step-1")
"""


def test_links_of_a_checkpoint_are_restored(nodes: JobNodes) -> None:
    nodes.start(SAVES_LINKS)
    assert nodes.wait() == [0]
    prefix = f"{BUCKET}/jobs/{JOB}/checkpoints/"
    assert [key.removeprefix(prefix) for key in nodes.aws.records if key.startswith(f"{prefix}latest")] == []
    nodes.next_attempt()
    nodes.start(SAVES_LINKS, resume_from="step-1", resume_job=JOB)
    assert nodes.wait() == [0]
    assert "resumes weights step-1\n" in nodes.log()


def test_checkpoint_with_what_cannot_be_stored_is_not_complete_and_no_success(nodes: JobNodes) -> None:
    nodes.start(
        "import os\nfolder = os.environ['TRN_CHECKPOINT_DIR']\nos.mkdir(folder + '/.new')\n"
        "open(folder + '/.new/opt.bin', 'w').write('1')\nos.symlink('/etc/passwd', folder + '/.new/model.bin')\n"
        "os.rename(folder + '/.new', folder + '/step-1')\nos.symlink('/none', folder + '/last')\n"
    )
    assert nodes.wait() == [RESULTS_LOST_CODE]
    assert nodes.end["result"] == "results-lost"
    links = "last (a link to /none, outside the folder), step-1/model.bin (a link to /etc/passwd, outside the folder)"
    assert nodes.end["reason"].endswith(f"checkpoints: {links}")
    assert not nodes.content("checkpoints/step-1.json")


def test_restarted_attempt_keeps_the_outputs_of_earlier_ones(nodes: JobNodes) -> None:
    for codes in ([1, 1], [1, 1], [0, 0]):
        nodes.start(APPENDS, nodes=2)
        assert nodes.wait() == codes, nodes.log()
        nodes.next_attempt()
    prefix = f"{BUCKET}/jobs/{JOB}/outputs/"
    stored = {key.removeprefix(prefix): text for key, text in nodes.aws.records.items() if key.startswith(prefix)}
    texts = {
        "home-directory/results/log": "123",
        "metrics.csv": "13",
        "run-1/log": "123",
        "working-directory/out/log": "123",
    }
    assert stored == {folder + name: text for folder in ("", "node-1/") for name, text in texts.items()}
    links = {"latest": "run-1", "working-directory/newest": "out"}
    assert nodes.content("attempts/outputs/1.json") == {"files": [*texts], "links": links}


def test_attempt_that_ends_before_it_has_the_earlier_outputs_does_not_forget_them(nodes: JobNodes) -> None:
    known: dict[str, Any] = {"files": ["log", "lost"], "links": {}}
    nodes.put("attempts/outputs/0.json", known)
    nodes.aws.records[f"{BUCKET}/jobs/{JOB}/outputs/log"] = "of the first attempt"
    nodes.next_attempt()
    nodes.start("print('computes')")
    nodes.wait()
    assert "the output lost of an earlier attempt was deleted" in nodes.end["reason"]
    assert nodes.content("attempts/outputs/0.json") == known


@pytest.mark.parametrize("path", ["../../evil", "/evil", "working-directory//evil"])
def test_output_of_an_earlier_attempt_stays_in_its_folder(nodes: JobNodes, path: str) -> None:
    nodes.put("attempts/outputs/0.json", {"files": [path], "links": {}})
    nodes.next_attempt()
    nodes.start("print('computes')")
    nodes.wait()
    assert f"the output {path} of an earlier attempt would be outside its folder" in nodes.end["reason"]


def test_outputs_are_stored_while_the_command_runs_and_a_lost_node_names_the_others(nodes: JobNodes) -> None:
    begins = "import os, time\nfolder = os.environ['TRN_OUTPUT_DIR']\nopen(folder + '/early', 'w').write('1')\n"
    key = f"{BUCKET}/jobs/{JOB}/outputs/"
    nodes.aws.put_status = lambda name: 503 if name.endswith("late") else 200
    nodes.start(begins + "time.sleep(2)\nopen(folder + '/late', 'w').write('1')\ntime.sleep(1000)\n")
    nodes.await_(lambda: f"{key}early" in nodes.aws.records)
    nodes.await_(lambda: nodes.record().get("unstored", "").endswith("are not in S3, among them late"))
    assert nodes.record()["state"] == "running"


def test_phases_of_an_attempt_include_the_time_after_the_command(nodes: JobNodes) -> None:
    def slow(name: str) -> int:
        if "/checkpoints/step-1/" in name:
            time.sleep(1)
        return 200

    nodes.aws.put_status = slow
    nodes.start(LEAVES_RESULTS, checkpoint_seconds=60)
    nodes.wait()
    phases = nodes.record()["phases"]
    assert phases["results"] >= 1
    assert phases["checkpoints"] <= phases["running"]


SAVES = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"])
resumed = os.environ.get("TRN_RESUME_FROM")
start = int((pathlib.Path(resumed) / "step").read_text()) if resumed else 0
print("begins at", start, flush=True)
for step in range(start + 1, 4):
    new = folder / f".step-{step}.tmp"
    new.mkdir()
    (new / "step").write_text(str(step))
    new.rename(folder / f"step-{step}")
(folder / ".step-9").mkdir()
(folder / "step-8.tmp").mkdir()
"""


@pytest.mark.parametrize(
    ("changes", "folder"),
    [({}, f"{BUCKET}/jobs"), ({"checkpoints": "s3://mine/kept"}, "mine/kept")],
    ids=["jobs", "own"],
)
def test_attempt_resumes_from_checkpoint_of_the_previous_one(
    nodes: JobNodes, changes: dict[str, Any], folder: str
) -> None:
    nodes.start(SAVES + "raise SystemExit(5)", **changes)
    nodes.wait()
    names = {key.partition("/checkpoints/")[::2] for key in nodes.aws.records if "/checkpoints/" in key}
    files = {
        name
        for step in (1, 2, 3)
        for name in (f"step-{step}.json", f"step-{step}/1-0-1.json", f"step-{step}/1-0-1/step-{step}/step")
    }
    assert names == {(f"{folder}/{JOB}", name) for name in files}
    nodes.next_attempt()
    nodes.start(SAVES, resume_from="step-2", resume_job=JOB, **changes)
    assert nodes.wait() == [0]
    assert "begins at 2\n" in nodes.log()


SHARDS = """
import os, pathlib
folder, rank = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"]), os.environ["TRN_NODE_RANK"]
found = [(path.name, sorted(file.name for file in path.iterdir())) for path in sorted(folder.iterdir())]
print("finds", found, os.environ.get("TRN_RESUME_FROM") in (None, str(folder / "checkpoint-500")), flush=True)
if not found:
    new = folder / ".checkpoint-500"
    new.mkdir()
    (new / f"shard-{rank}").write_text(rank)
    new.rename(folder / "checkpoint-500")
"""


def test_shards_of_all_nodes_are_stored_and_restored_in_place(nodes: JobNodes) -> None:
    nodes.start(SHARDS, nodes=2)
    assert nodes.wait() == [0, 0]
    assert nodes.content("checkpoints/checkpoint-500.json")["parts"] == ["1-0-1", "1-1-1"]
    nodes.next_attempt()
    nodes.start(SHARDS, nodes=2, resume_from="checkpoint-500", resume_job=JOB)
    assert nodes.wait() == [0, 0]
    for rank in (0, 1):
        assert "finds [('checkpoint-500', ['shard-0', 'shard-1'])] True\n" in nodes.log(rank)


LEAVES_MORE = """
import os, pathlib
folder, rank = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"]), os.environ["TRN_NODE_RANK"]
for name in ("log/events", *(["final/model.pt", "step-1/shard-0", "step-2/shard-0", ".cache/x"] if rank == "0" else
                             ["step-1/shard-1", "step-3/shard-1"])):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(rank)
"""


def test_all_that_nodes_leave_beside_checkpoints_is_stored_and_what_is_not_complete_is_named(nodes: JobNodes) -> None:
    nodes.start(LEAVES_MORE, nodes=2)
    assert nodes.wait() == [0, 0], nodes.log()
    assert nodes.content("checkpoints/log.json")["parts"] == ["1-0-1", "1-1-1"]
    assert nodes.content("checkpoints/final.json")["parts"] == ["1-0-1"]
    assert nodes.content("checkpoints/step-1.json")["parts"] == ["1-0-1", "1-1-1"]
    parts = {".cache": ["1-0-1"], "step-2": ["1-0-1"], "step-3": ["1-1-1"]}
    assert nodes.content("attempts/incomplete-checkpoints.json") == {"parts": parts}
    for name, (part,) in parts.items():
        assert nodes.content(f"checkpoints/{name}/{part}.json")["files"]
    assert (nodes.end["result"], nodes.end["reason"]) == (
        "succeeded",
        f"checkpoints that are not complete: .cache, step-2, step-3; "
        f"to copy what is stored of them: `trn cp {JOB}:incomplete-checkpoints DIR`",
    )


def test_shards_of_an_interrupted_job_are_complete(nodes: JobNodes) -> None:
    interrupted = SHARDS + "import time\nprint('ready', flush=True)\nwhile True: time.sleep(1)\n"
    nodes.start(interrupted, nodes=2, checkpoint_seconds=60)
    nodes.await_(lambda: all("ready" in nodes.log(rank) for rank in (0, 1)))
    nodes.put("stop.json", {"at": "2026-11-22T19:05:01Z", "reason": "trn stop"})
    assert nodes.wait() == [1, 1]
    assert nodes.content("checkpoints/checkpoint-500.json")["parts"] == ["1-0-1", "1-1-1"]


def test_shard_that_does_not_reach_s3_loses_the_results(nodes: JobNodes) -> None:
    nodes.aws.put_status = lambda name: 403 if "/1-1-1/" in name else 200
    nodes.start(SHARDS, nodes=2, timing={"refused": 0})
    assert nodes.wait() == [1, RESULTS_LOST_CODE]
    assert nodes.end["result"] == "results-lost"
    assert nodes.end["node"] == 1
    assert not nodes.content("checkpoints/checkpoint-500.json")


def test_checkpoint_of_another_world_size_is_refused(nodes: JobNodes) -> None:
    nodes.put("checkpoints/step-2.json", {"world_size": 64, "files": {}})
    nodes.start("print('computes')", resume_from="step-2", resume_job=JOB)
    nodes.wait()
    assert nodes.end["reason"] == (
        f"node 0 (i-0): checkpoint step-2 of job {JOB} was saved by 64 processes, and this job has 1: "
        "run the job with as many, or convert the checkpoint"
    )
