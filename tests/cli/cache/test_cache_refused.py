"""`trn cache` of whoever lacks a permission of S3: moto holds each request against the policy of who signed it."""

import json
from collections.abc import Callable

import boto3
import pytest
from moto.core import set_initial_no_auth_action_count

from tests.cli.cache.test_cache_command import BUCKET, NAMED, Stored
from tests.cli.jobs.cluster_with_jobs import Cluster
from tests.cli.running import run
from trainium_cli.cache import cache_look_commands
from trainium_cli.exit_codes import ExitCode
from trainium_runtime.errors import BE_ALLOWED

FIND, LIST = "s3:HeadBucket", "s3:ListBucket"
"""FIND: moto's own. AWS asks for s3:ListBucket there as well."""
COMMANDS = {
    "status": ("status",),
    "list": ("list",),
    "clean": ("clean", "--keep-releases", "0", "--yes"),
}

run_as_allowed = set_initial_no_auth_action_count(0)(run)


@pytest.fixture
def may(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Signs in as somebody who may do so much. The cache has one entry."""
    del cluster

    def no_prices(_region: str) -> None:
        return None

    monkeypatch.setattr(cache_look_commands, "AwsPrices", no_prices)
    stored = Stored()
    stored.packed("entry")

    def sign_in(*actions: str) -> None:
        iam = boto3.client("iam")
        iam.create_user(UserName="somebody")
        allowed = {"Effect": "Allow", "Action": [*actions, "sts:GetCallerIdentity"], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="somebody", PolicyName="some", PolicyDocument=document)
        key = iam.create_access_key(UserName="somebody")["AccessKey"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])

    return sign_in


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("allowed", [(), (FIND,)], ids=["nothing", "find"])
def test_without_the_right_to_list_a_bucket_each_command_says_so_in_a_sentence(
    may: Callable[..., None], command: str, allowed: tuple[str, ...]
) -> None:
    may(*allowed)
    ended = run_as_allowed("cache", *COMMANDS[command], *NAMED)
    assert ended.exit_code == ExitCode.UNKNOWN
    assert not ended.stdout
    sentence = f"not allowed to read: the permission s3:ListBucket on the bucket {BUCKET} is missing"
    assert ended.stderr == f"Unknown: {sentence}: {BE_ALLOWED}\n"


def test_clean_without_the_right_to_delete_says_so(may: Callable[..., None]) -> None:
    may(FIND, LIST)
    ended = run_as_allowed("cache", *COMMANDS["clean"], *NAMED)
    missing = f"the permission s3:DeleteObject on the bucket {BUCKET} is missing"
    assert ended.exit_code == ExitCode.NOT_READY
    assert ended.stderr == f"Not everything was deleted: not allowed: {missing} (1 in all)\n"
