"""`trn cache` against S3 of moto, with entries as nodes pack them and as PyTorch/XLA writes them."""

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from click.testing import Result
from moto.core import set_initial_no_auth_action_count

from tests.cli.conftest import FakeLocating
from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.jobs.test_job_commands import CACHE_USE
from tests.cli.running import run
from tests.core.aws_stubs import stack_record
from tests.core.job_bucket import REGION
from trainium_cli.cache import cache_clean_command, cache_look_commands
from trainium_cli.exit_codes import ExitCode
from trainium_wire.cache_place import cache_entry_place

BUCKET, FOLDER = "team-cache", "neuron-compile-cache"
NAMED = ("--bucket", BUCKET, "--region", REGION)
OLD, NEW = "2.20.1", "2.21.2+a1"
DIRECT = "neuronxcc-2.21.2+a1/MODULE_7+d41"


class Stored:
    """A bucket of a compile cache. Its `s3` is boto3's client."""

    def __init__(self, bucket: str = BUCKET, region: str = REGION) -> None:
        self.s3: Any = boto3.client("s3", region)
        self.bucket = bucket
        self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})

    def packed(self, name: str, *, compiler: str = NEW) -> str:
        place = cache_entry_place(
            compiler=compiler, instance_type="trn2.48xlarge", lnc=2, stack="native", world_size=64
        )
        self.put(place.key(name), b"NEFF")
        return place.key(name)

    def direct(self, *files: str) -> None:
        for file in files:
            self.put(f"{DIRECT}/{file}", b"1")

    def put(self, key: str, body: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=f"{FOLDER}/{key}", Body=body)

    @property
    def keys(self) -> list[str]:
        found = self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return [entry["Key"].removeprefix(f"{FOLDER}/") for entry in found]


@pytest.fixture
def stored(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Stored:
    """An empty bucket for a cache in moto, beside a deployed cluster. There are no prices."""
    del cluster

    def no_prices(_region: str) -> None:
        return None

    monkeypatch.setattr(cache_look_commands, "AwsPrices", no_prices)
    return Stored()


def shown(ended: Result) -> Any:
    return json.loads(ended.stdout)


def test_status_shows_size_cost_and_releases(stored: Stored) -> None:
    stored.packed("a", compiler=OLD)
    stored.packed("b")
    stored.packed("c")
    stored.put("notes.txt", b"mine")
    ended = run("cache", "status", *NAMED)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert f"s3://{BUCKET}/{FOLDER}" in ended.stdout
    assert "3 entries, 12 bytes, and 1 other object" in ended.stdout
    assert "< $0.01 a month" in ended.stdout
    as_json = shown(run("cache", "status", *NAMED, "--json"))
    assert {use["release"]: use["entries"] for use in as_json["releases"]} == {
        "neuronx-cc-2.21.2-a1": 2,
        "neuronx-cc-2.20.1": 1,
    }
    assert (as_json["bytes"], as_json["requests"], as_json["jobs"]) == (16, 1, None)


def test_status_finds_the_cache_of_the_record_and_its_hit_rate(
    stored: Stored, cluster: Cluster, clusters: FakeLocating
) -> None:
    assert run("cache", "status", *TWO).exit_code == ExitCode.NOT_READY
    clusters.recorded = [stack_record(cache_url=f"s3://{BUCKET}/{FOLDER}")]
    cluster.job_nodes.submit()
    cluster.job_nodes.start()
    cluster.job_nodes.node(0, "succeeded", compile_caches=[CACHE_USE])
    stored.packed("a")
    ended = run("cache", "status", *TWO)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "93% in the last job: 40 hits, 3 misses" in ended.stdout


def test_list_shows_entries_of_nodes_and_of_pytorch_xla(stored: Stored) -> None:
    key = stored.packed("a")
    stored.direct("model.neff", "model.done", "compile_flags.json")
    listed = {one["path"]: one for one in shown(run("cache", "list", *NAMED, "--json"))}
    assert {path: (one["packed"], one["bytes"]) for path, one in listed.items()} == {
        key: (True, 4),
        DIRECT: (False, 3),
    }
    assert {one["release"] for one in listed.values()} == {"neuronx-cc-2.21.2-a1"}
    assert key in run("cache", "list", *NAMED).stdout.replace("\n", "")


def test_clean_deletes_only_entries_of_the_named_release(stored: Stored) -> None:
    stored.packed("old", compiler=OLD)
    new = stored.packed("new")
    stored.put("notes.txt", b"mine")
    ended = run("cache", "clean", *NAMED, "--release", "neuronx-cc-2.20.1", "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert sorted(stored.keys) == sorted([new, "notes.txt"])


def test_clean_lists_entries_and_prompts(stored: Stored) -> None:
    stored.packed("a")
    ended = run("cache", "clean", *NAMED, "--keep-releases", "0")
    assert "1 entry, 4 bytes of 1 entry, 4 bytes in" in ended.stdout
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert len(stored.keys) == 1


def test_clean_deletes_the_done_marker_first(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    stored.direct("compile_flags.json", "model.done", "model.neff")
    deleted: list[list[str]] = []
    monkeypatch.setattr(
        "trainium_core.compile_cache.aws_cache.AwsCompileCache._delete",
        lambda _self, keys: deleted.append([key.rpartition("/")[2] for key in keys]),
    )
    run("cache", "clean", *NAMED, "--keep-releases", "0", "--yes")
    assert deleted == [["model.done"], ["compile_flags.json", "model.neff"]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["clean", "--release", "neuronx-cc-1", "--yes"], "has no release neuronx-cc-1; it has no entries"),
        (["status", "--bucket", "no/such//bucket!"], "--bucket: got"),
        (["status", "--bucket", "is-not-there"], "Bucket is-not-there does not exist"),
    ],
)
@pytest.mark.usefixtures("stored")
def test_invalid_arguments_are_named(arguments: list[str], expected: str) -> None:
    ended = run("cache", arguments[0], *NAMED, *arguments[1:])
    assert ended.exit_code in (ExitCode.BAD_INPUT, ExitCode.NOT_READY)
    assert expected in ended.stderr.replace("\n", "")


@pytest.mark.parametrize("command", ["status", "list", "clean --keep-releases 0 --yes"])
def test_requests_stay_within_the_allowed_number(stored: Stored, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        stored.packed(f"{number}")
    monkeypatch.setattr("trainium_core.compile_cache.aws_cache.KEYS_PER_DELETE", 1)
    sent = count_requests(monkeypatch)
    ended = run("cache", *command.split(), *NAMED, "--most-requests", "2")
    assert len(sent) <= 2
    assert ended.exit_code == int(command.startswith("clean")), ended.output


def count_requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count the requests to S3 from here on, except for the one that looks for the bucket."""
    from botocore.client import BaseClient

    sent: list[str] = []
    make: Callable[..., Any] = BaseClient._make_api_call

    def counted(client: Any, operation: str, parameters: Any) -> Any:
        if operation != "HeadBucket":
            sent.append(operation)
        return make(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    return sent


@pytest.mark.parametrize("name", ["../../x", ".hidden", "a\u202eb"], ids=ascii)
def test_unsafe_key_is_not_an_entry(stored: Stored, name: str) -> None:
    stored.packed(name)
    assert shown(run("cache", "status", *NAMED, "--json"))["entries"] == 0
    assert "has no entries" in run("cache", "list", *NAMED).stdout


def test_clean_without_conditions_selects_unused_places(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Nothing to delete" in run("cache", "clean", *NAMED, "--yes").stdout
    key = stored.packed("a")
    stored.direct("model.neff", "model.done")
    assert "Nothing to delete: none of 2 entries" in run("cache", "clean", *NAMED, "--yes").stdout
    monkeypatch.setattr(cache_clean_command, "_UNUSED_DAYS", -1)
    assert "1 entry, 4 bytes of 2 entries" in run("cache", "clean", *NAMED, "--yes").stdout
    assert key not in stored.keys
    assert len(stored.keys) == 2


def test_missing_permissions_are_named(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    stored.packed("a")
    iam: Any = boto3.client("iam")
    iam.create_user(UserName="somebody")
    key = iam.create_access_key(UserName="somebody")["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    # s3:HeadBucket is moto's own action. AWS requires s3:ListBucket there as well.
    for allowed, code, missing in (
        ("s3:HeadBucket", ExitCode.UNKNOWN, "s3:ListBucket"),
        ("s3:ListBucket", ExitCode.NOT_READY, "s3:DeleteObject"),
    ):
        actions = ["sts:GetCallerIdentity", "s3:HeadBucket", allowed]
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        iam.put_user_policy(UserName="somebody", PolicyName="some", PolicyDocument=json.dumps(document))
        ended = set_initial_no_auth_action_count(0)(run)("cache", "clean", *NAMED, "--keep-releases", "0", "--yes")
        assert ended.exit_code == code
        assert f"the permission {missing} on the bucket {BUCKET} is missing" in ended.stderr
