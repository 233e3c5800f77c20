"""`trn handoff bedrock`: exit codes, policies and commands. The checks are tested in tests/core."""

import json
from pathlib import Path
from typing import ClassVar

import pytest

from tests.cli.running import GOOD, run
from tests.core.test_bedrock_checkpoint import safetensors, write_checkpoint
from trainium_cli.evidence import handoff_command
from trainium_cli.exit_codes import ExitCode
from trainium_core.evidence.aws_bedrock import ImportJob
from trainium_core.evidence.bedrock import CheckpointFolder
from trainium_runtime.errors import RequestRefusedError


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


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
    assert "Nothing was imported" in shown
    printed = json.loads(run("handoff", "bedrock", str(checkpoint), *options, "--json").stdout)
    assert {finding["status"] for finding in printed["findings"]} == {"pass"}


ROLE = "arn:aws:iam::123456789012:role/import"
GO = ("--go", "--role", ROLE, "--name", "llama", *GOOD)


class Bedrock:
    started: ClassVar[list[dict[str, str]]] = []
    refuses = False

    def __init__(self, region: str, **_: object) -> None:
        self._region = region

    def start(self, **options: str) -> str:
        if self.refuses:
            raise RequestRefusedError("not allowed: the permission bedrock:CreateModelImportJob is missing")
        self.started.append({**options, "region": self._region})
        return "arn:job"

    def job(self, arn: str) -> ImportJob:
        return ImportJob(arn=arn, status="InProgress")


@pytest.fixture
def bedrock(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> type[Bedrock]:

    def in_s3(_region: str, bucket: str, prefix: str, _clients: object) -> CheckpointFolder:
        assert (bucket, prefix) == ("models", "llama/")
        return CheckpointFolder(checkpoint)

    monkeypatch.setattr(handoff_command, "CheckpointInS3", in_s3)
    monkeypatch.setattr(handoff_command, "AwsModelImport", Bedrock)
    monkeypatch.setattr(Bedrock, "started", [])
    return Bedrock


def test_import_starts_after_confirmation_in_the_plans_region(bedrock: type[Bedrock]) -> None:
    shown = run("handoff", "bedrock", "s3://models/llama", *GO, stdin="y\n")
    assert shown.exit_code == ExitCode.OK, shown.output
    assert "Started arn:job: InProgress. Whether the import succeeds is not known yet" in shown.stdout
    (started,) = bedrock.started
    assert started.pop("job_name").startswith("llama-20")
    location = "s3://models/llama/"
    assert started == {
        "name": "llama",
        "role": ROLE,
        "location": location,
        "cluster": "trn-pilot",
        "region": "us-west-2",
    }


def test_declined_import_is_not_started(bedrock: type[Bedrock]) -> None:
    assert run("handoff", "bedrock", "s3://models/llama", *GO, stdin="n\n").exit_code != ExitCode.OK
    assert bedrock.started == []


def test_checkpoint_that_fails_a_check_is_not_imported(bedrock: type[Bedrock], checkpoint: Path) -> None:
    (checkpoint / "config.json").unlink()
    assert run("handoff", "bedrock", "s3://models/llama", *GO, "--yes").exit_code == ExitCode.NOT_READY
    assert bedrock.started == []


def test_region_without_imports_is_refused(bedrock: type[Bedrock]) -> None:
    options = (*GO, "-c", "trn:region=sa-east-1", "-c", "trn:instance_type=trn2.3xlarge")
    ended = run("handoff", "bedrock", "s3://models/llama", *options, "--yes")
    assert (ended.exit_code, bedrock.started) == (ExitCode.NOT_READY, [])
    assert "sa-east-1 does not support model import" in " ".join(ended.stdout.split())


def test_refused_import_says_why(bedrock: type[Bedrock], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bedrock, "refuses", True)
    ended = run("handoff", "bedrock", "s3://models/llama", *GO, "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Not imported: not allowed: the permission bedrock:CreateModelImportJob is missing" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((".", *GO), "--go needs a checkpoint in S3"),
        (("s3://models/llama", "--go", *GOOD), "--go needs --role and --name"),
        (("s3://models/llama", *GO, "--region", "us-east-1"), "is not the region of the plan, us-west-2"),
        (("s3://models/llama", *GO, "--json"), "--json does not prompt"),
        (("s3://models/llama", *GO, "--name", "a--b"), "'a--b' is not a model name: up to 63 letters, digits"),
        (("nothing",), "'nothing' is not a folder"),
    ],
)
def test_mistaken_import_is_bad_usage(bedrock: type[Bedrock], arguments: tuple[str, ...], says: str) -> None:
    ended = run("handoff", "bedrock", *arguments)
    assert (ended.exit_code, bedrock.started) == (ExitCode.BAD_INPUT, [])
    assert says in " ".join(ended.stderr.split())


@pytest.mark.parametrize("options", [("--s3", "models/llama"), ("--s3", "s3://models"), ("--account", "1")])
def test_mistaken_option_is_bad_usage(options: tuple[str, str], checkpoint: Path) -> None:
    assert run("handoff", "bedrock", str(checkpoint), *options).exit_code == ExitCode.BAD_INPUT
