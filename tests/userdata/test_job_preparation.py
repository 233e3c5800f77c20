"""What a node does before the command of a job: source, checkpoint, inputs and setup. Wrappers run for real."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pip
import pytest

from tests.userdata.job_nodes import JobNodes
from tests.userdata.node_files import BUCKET, JOB


def wheel(folder: Path, version: str) -> Path:
    """A package of one module that prints its version."""
    file = folder / f"tool-{version}-py3-none-any.whl"
    wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    metadata = f"Metadata-Version: 2.1\nName: tool\nVersion: {version}\n"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("tool.py", f"print('tool {version}')\n")
        for name, text in (("METADATA", metadata), ("WHEEL", wheel), ("RECORD", "")):
            packed.writestr(f"tool-{version}.dist-info/{name}", text)
    return file


@pytest.mark.parametrize("is_virtual", [True, False])
def test_setup_installs_over_the_image_and_never_into_it(nodes: JobNodes, tmp_path: Path, is_virtual: bool) -> None:
    image = tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", image], check=True)
    if not is_virtual:
        (image / "pyvenv.cfg").unlink()
    (packages,) = image.glob("lib/python3*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)  # Installing it takes seconds.
    (image / "bin/pip").write_text(f"#!{image}/bin/python\nfrom pip._internal.cli.main import main\nmain()\n")
    with zipfile.ZipFile(wheel(tmp_path, "1.0")) as packed:
        packed.extractall(packages)
    (image / "bin/torchrun").write_text(f"#!{image}/bin/python\nimport tool")
    before = sorted(image.rglob("*"))
    nodes.start(
        "",
        setup=f"$VIRTUAL_ENV/bin/torchrun && $VIRTUAL_ENV/bin/pip install --no-index {wheel(tmp_path, '2.0')}",
        command="$VIRTUAL_ENV/bin/torchrun",
        venv=str(image),
    )
    assert nodes.wait() == [0], nodes.log()
    printed = [line for line in nodes.log().splitlines() if line.startswith("tool")]
    assert printed == ["tool 1.0", "tool 2.0"]
    assert [path for path in sorted(image.rglob("*")) if "__pycache__" not in path.parts] == [
        path for path in before if "__pycache__" not in path.parts
    ]


def test_failed_setup_is_reported_and_command_does_not_run(nodes: JobNodes) -> None:
    nodes.start("print('computes')", setup="echo no such package >&2\nexit 4")
    nodes.wait()
    assert nodes.end["reason"] == "node 0 (i-0): setup: ended with exit code 4; its last line: no such package"
    assert "computes" not in nodes.log()


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("setup", "false\necho continues", "setup: ended with exit code 1"),
        ("setup", "{ echo no such package; exit 4; } 2>&1 | cat", "setup: ended with exit code 4; its last line:"),
        ("command", "false\necho continues", "ended with exit code 1"),
        ("command", f"{sys.executable} train.py 2>&1 | tee log", "ValueError: no such data set"),
    ],
    ids=["setup", "pipeline in the setup", "command", "pipeline in the command"],
)
def test_first_command_that_fails_fails_the_job(nodes: JobNodes, key: str, text: str, reason: str) -> None:
    changes: dict[str, Any] = {key: text}
    nodes.start("raise ValueError('no such data set')", **changes)
    assert nodes.wait() == [1]
    assert nodes.end["result"] == "failed"
    assert nodes.end["reason"].startswith(f"node 0 (i-0): {reason}")
    assert "continues\n" not in nodes.log()


def test_commands_of_the_profile_may_fail(nodes: JobNodes) -> None:
    (nodes.folder / ".bash_profile").write_text("false | true\nfalse\n")
    nodes.start("print('computes')", setup="true")
    assert nodes.wait() == [0]
    assert "computes\n" in nodes.log()


def test_source_other_than_the_submitted_one_is_not_run(nodes: JobNodes) -> None:
    nodes.start("print('computes')", source_sha256="0" * 64)
    nodes.wait()
    assert nodes.end["reason"] == "node 0 (i-0): the packed source in S3 is not the one that was submitted"


def test_inputs_are_fetched_before_the_setup(nodes: JobNodes) -> None:
    nodes.aws.records["data/tokens/a.bin"] = "one"
    nodes.aws.records["data/tokens/deep/b.bin"] = "two"
    nodes.aws.records[f"{BUCKET}/inputs/{JOB}/words"] = "three"
    inputs = {"tokens": "s3://data/tokens/", "words": "inputs/words"}
    nodes.start(
        "print('computes')", inputs=inputs, setup='cd "$TRN_INPUT_DIR" && cat tokens/a.bin tokens/*/b.bin words'
    )
    assert nodes.wait() == [0]
    assert "onetwothree\n" in nodes.log()
    assert "inputs" in nodes.record()["phases"]


CAT_WORDS = 'cat "$TRN_INPUT_DIR/words"'


@pytest.mark.parametrize("kind", ["source.tar.gz", "checkpoints", "inputs"])
def test_attempt_begins_once_s3_is_available(nodes: JobNodes, kind: str) -> None:
    nodes.start("import os\nopen(os.environ['TRN_CHECKPOINT_DIR'] + '/step-1', 'w').write('1')")
    assert nodes.wait() == [0]
    unavailable = 0

    def status(name: str) -> int:
        nonlocal unavailable
        unavailable += kind in name
        return 503 if kind in name and unavailable <= 12 else 200

    nodes.aws.records[f"{BUCKET}/inputs/{JOB}/words"] = "three words"
    nodes.aws.get_status = status
    nodes.next_attempt()
    nodes.start("", inputs={"words": "inputs/words"}, resume_from="step-1", resume_job=JOB, setup=CAT_WORDS)
    assert nodes.wait() == [0], nodes.end
    assert nodes.log().count("S3 is unavailable for GET s3://") == 1
    assert "503 SlowDown; retrying for up to 15 minutes\n" in nodes.log()
    assert "three words\n" in nodes.log()


def test_attempt_begins_once_secrets_are_available(nodes: JobNodes) -> None:
    arn = "arn:aws:ssm:us-west-2:123456789012:parameter/token"
    nodes.aws.secrets[arn] = "pa$$ word-31337"
    nodes.aws.throttled = 12
    nodes.start("import os\nprint(len(os.environ['TOKEN']))", secrets={"TOKEN": arn})
    assert nodes.wait() == [0], nodes.end
    throttled = f"AWS returns no value for {arn}: ThrottlingException"
    assert nodes.log().count(throttled) == 1
    assert "retrying for up to 15 minutes\n" in nodes.log()
    assert "\n15\n" in nodes.log()


@pytest.mark.parametrize(
    ("status", "timing", "verb"), [(403, {}, "refuses"), (503, {"results": 0}, "is unavailable for")]
)
def test_source_that_s3_does_not_serve_fails_the_job(
    nodes: JobNodes, status: int, timing: dict[str, float], verb: str
) -> None:
    nodes.aws.get_status = lambda name: status if "source.tar.gz" in name else 200
    nodes.start("print('computes')", timing=timing)
    assert nodes.wait() == [1]
    assert nodes.end["result"] == "failed"
    assert nodes.end["reason"].startswith(
        f"node 0 (i-0): S3 {verb} GET s3://{BUCKET}/jobs/{JOB}/source.tar.gz: {status}"
    )


@pytest.mark.parametrize(("stop", "limit", "result"), [(True, None, "stopped"), (False, 0.5, "time-limit")])
def test_job_that_waits_for_s3_can_end(nodes: JobNodes, stop: bool, limit: float | None, result: str) -> None:
    nodes.aws.get_status = lambda name: 503 if "source.tar.gz" in name else 200
    nodes.start("print('computes')", time_limit_seconds=3600, seconds_left=limit)
    if stop:
        nodes.await_(lambda: "retrying" in nodes.log())
        nodes.put("stop.json", {})
    assert nodes.wait() == [1]
    assert nodes.end["result"] == result


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://data/none/", "the input tokens: there is nothing below s3://data/none/"),
        ("s3://data/none", "the input tokens: s3://data/none does not exist; a folder's URL ends with /"),
    ],
    ids=["folder", "file"],
)
def test_missing_input_is_named(nodes: JobNodes, url: str, reason: str) -> None:
    nodes.start("print('computes')", inputs={"tokens": url})
    nodes.wait()
    assert nodes.end["reason"] == f"node 0 (i-0): {reason}"
