"""What `trn support` writes: nothing that is a secret, and what there is when much cannot be had."""

import io
import json
import tarfile
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.support.archive import MANIFEST, Part, gather, write_archive
from trainium_core.support.masking import MASK, Masking, secrets_of_environment, secrets_of_script
from trainium_runtime.errors import UnavailableError

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

LINES = {
    "access key id": ("key AKIAIOSFODNN7EXAMPLE was used", "AKIAIOSFODNN7EXAMPLE"),
    "temporary access key id": ("ASIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"),
    "secret key by itself": (f"using {SECRET} now", SECRET),
    "secret key in JSON": (json.dumps({"SecretAccessKey": "abc def"}), "abc def"),
    "secret key in JSON in JSON": (json.dumps({"message": json.dumps({"SecretAccessKey": "abc-def"})}), "abc-def"),
    "session token": (f"X-Amz-Security-Token: {'IQoJb3JpZ2luX2Vj' * 8}==", "IQoJb3JpZ2luX2Vj"),
    "signed URL": ("https://b.s3.amazonaws.com/k?X-Amz-Signature=0f1e2d3c&X-Amz-Date=1", "0f1e2d3c"),
    "shell": ("+ export HF_TOKEN=hunter2-abc", "hunter2-abc"),
    "quoted shell": ("+ export DB_PASSWORD='two words'", "two words"),
    "option": ("wandb login --api-key 0123456789abcdef", "0123456789abcdef"),
    "header": ("authorization: Bearer abc.def-ghi", "abc.def-ghi"),
    "URL": ("git clone https://user:s3cret@github.com/a/b", "s3cret"),
    "GitHub": ("ghp_0123456789abcdefABCDEF0123456789abcd", "ghp_0123"),
    "Hugging Face": ("logged in with hf_abcdefghijklmnopqrst", "hf_abc"),
    "JSON Web Token": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJhbGciOi"),
    "private key": ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    "account": ("arn:aws:iam::123456789012:role/cluster", "123456789012"),
    "account in a bucket's name": ("s3://cdk-hnb659fds-assets-123456789012-us-west-2", "123456789012"),
    "e-mail address": ("tell ops@example.com of the budget", "ops@example.com"),
}


@pytest.mark.parametrize(("line", "secret"), LINES.values(), ids=LINES)
def test_a_secret_in_a_log_is_masked(line: str, secret: str) -> None:
    assert secret not in Masking()(line)


@pytest.mark.parametrize(
    "line",
    [
        "i-0123456789abcdef0 (10.42.0.11): 15 of 16 Neuron devices (missing 7)",
        "the node script is not the one that was deployed: SHA-256 " + "0f" * 32,
        "2026-11-22T19:00:00Z verify the node",
        "1763838000000 START RequestId: 0a1b2c3d-0000-1111-2222-333344445555 Version: $LATEST",
        '{"Key": "trn:cluster", "Value": "pilot"}',
        "/opt/aws_neuronx_venv_pytorch_2_9/bin/python",
    ],
)
def test_what_is_needed_to_help_stays(line: str) -> None:
    assert Masking()(line) == line


def test_json_stays_json() -> None:
    text = json.dumps({"Token": 'a "quoted" one', "n": 1, "Nested": {"password": "x y"}}, indent=2)
    assert json.loads(Masking()(text))["n"] == 1


@pytest.mark.parametrize("value", [None, True, [], {}, ["arn:aws:ssm:us-west-2:1:parameter/x"], {"HF": "s3://b/k"}])
@pytest.mark.parametrize("indent", [None, 2])
def test_what_is_no_text_stays_as_json_has_it(value: object, indent: int | None) -> None:
    settings = {"job_secrets": value, "nodes": 2}
    assert json.loads(Masking()(json.dumps(settings, indent=indent))) == settings


def test_accounts_are_distinguished() -> None:
    masking = Masking()
    assert masking("123456789012 210987654321") == "<account 1> <account 2>"
    assert masking("arn:aws:sns:us-west-2:210987654321:topic") == "arn:aws:sns:us-west-2:<account 2>:topic"


@given(st.text(min_size=6, alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"])), st.text(), st.text())
def test_a_known_secret_is_nowhere(secret: str, before: str, after: str) -> None:
    masked = Masking([secret])(f"{before}{secret}{after}")
    assert secret in MASK or secret not in masked.replace(MASK, "")


def test_variables_with_names_of_secrets_are_known() -> None:
    environment = {"HF_TOKEN": "one-two", "MY_KEY": "three-four", "PATH": "/bin", "PWD": "/home/me", "AWS_REGION": "r"}
    assert secrets_of_environment(environment) == {"one-two", "three-four"}


def test_what_a_setup_script_assigns_is_known() -> None:
    script = "#!/bin/bash\nexport WANDB_API_KEY=\"a b\"\n  DB_PASSWORD='c-d'\nNAME=value\n"
    assert secrets_of_script(script) == {"a b", "c-d"}


def files_of(archive: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {one.name: stream.read().decode() for one in opened if (stream := opened.extractfile(one))}


def denied() -> str:
    raise UnavailableError("not allowed to read: the permission s3:GetObject is missing")


def broken() -> str:
    raise KeyError("Events of 123456789012")


def test_the_names_of_files_are_masked_folder_by_folder_and_stay_apart() -> None:
    group = "TrnClusterStack-ClusterFleetLaunchTemplateVersionChooserLogDC8541D2-XXXXXXXXXXXX.log"
    found = {f"TrnClusterStack/{group}": "a", f"{'x' * 99}1.log": "b", f"{'x' * 99}2.log": "c"}
    files = gather([Part(name="function-logs", gather=lambda: found)], Masking()).files
    assert files == {
        f"function-logs/TrnClusterStack/{group}": "a",
        f"function-logs/{MASK}.log": "b",
        f"function-logs/{MASK}.log.2": "c",
    }


def test_an_archive_has_what_could_be_had_and_names_the_rest() -> None:
    parts = [
        Part(name="versions.txt", gather=lambda: "Python 3.11\n"),
        Part(name="logs", gather=lambda: {"i-1.log": "export TOKEN=abcdef\n"}),
        Part(name="records.json", gather=denied),
        Part(name="events.json", gather=broken),
    ]
    archive = write_archive(gather(parts, Masking()), folder="bundle", made=datetime(2026, 11, 22, tzinfo=UTC))
    files = files_of(archive)
    manifest = json.loads(files.pop(f"bundle/{MANIFEST}"))
    assert files == {"bundle/versions.txt": "Python 3.11\n", "bundle/logs/i-1.log": f"export TOKEN={MASK}\n"}
    assert manifest["unavailable"] == {
        "records.json": "not allowed to read: the permission s3:GetObject is missing",
        "events.json": "KeyError: 'Events of <account 1>'",
    }
