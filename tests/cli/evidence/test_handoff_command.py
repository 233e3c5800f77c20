"""`trn handoff bedrock`: exit codes, policies and commands. The checks are tested in tests/core."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.core.test_bedrock_checkpoint import safetensors, write_checkpoint
from trainium_cli.exit_codes import ExitCode


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path)
    return tmp_path


def test_exit_code_is_the_worst_finding(checkpoint: Path) -> None:
    assert run("handoff", "bedrock", str(checkpoint)).exit_code == ExitCode.OK
    (checkpoint / "model.safetensors").write_bytes(safetensors("F64"))
    assert run("handoff", "bedrock", str(checkpoint)).exit_code == ExitCode.UNKNOWN
    (checkpoint / "config.json").unlink()
    assert run("handoff", "bedrock", str(checkpoint)).exit_code == ExitCode.NOT_READY


def test_policies_and_commands_name_the_location(checkpoint: Path) -> None:
    options = ("--s3", "s3://models/llama", "--account", "123456789012", "--region", "us-west-2")
    shown = " ".join(run("handoff", "bedrock", str(checkpoint), *options).output.split())
    assert '"arn:aws:s3:::models/llama/*"' in shown
    assert '"aws:SourceAccount": "123456789012"' in shown
    assert "s3DataSource={s3Uri=s3://models/llama/}" in shown
    assert "--imported-model-tags key=trn:cluster,value=CLUSTER" in shown
    printed = json.loads(run("handoff", "bedrock", str(checkpoint), *options, "--json").stdout)
    assert {finding["status"] for finding in printed["findings"]} == {"pass"}


@pytest.mark.parametrize(
    "arguments",
    [("nothing",), (".", "--s3", "models/llama"), (".", "--s3", "s3://models"), (".", "--account", "1")],
)
def test_invalid_argument_is_bad_usage(arguments: tuple[str, ...]) -> None:
    assert run("handoff", "bedrock", *arguments).exit_code == ExitCode.BAD_INPUT
