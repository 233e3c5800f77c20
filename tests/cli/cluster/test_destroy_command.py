"""`trn destroy`: its output, its prompt, and the exit code. The teardown itself is tested in tests/core."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import FakeLocating
from tests.cli.running import GOOD, run
from tests.core.aws_stubs import stack_record
from tests.core.fake_teardown import CACHE, GROUP, OTHER_CLUSTER, OWN_CLUSTER, RECORDS, FakeTeardown, cluster_stack
from trainium_cli.cluster import destroy_command
from trainium_cli.cluster.destroy_command import show_inventory
from trainium_cli.exit_codes import ExitCode
from trainium_core.clusters.cluster import ClusterNode
from trainium_core.stacks.description import DescribedResource, StackDescription
from trainium_core.teardown import run as teardown_run
from trainium_core.teardown.inventory import DeletedItem, Inventory
from trainium_core.teardown.scope import Scope


@pytest.fixture(autouse=True)
def _without_pauses_and_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teardown_run, "SHORTEST_PAUSE", 0)
    monkeypatch.setattr(destroy_command, "running_job_sentence", lambda *_: None)


def destroy(monkeypatch: pytest.MonkeyPatch, account: FakeTeardown, *options: str, typed: str | None = None) -> Result:
    monkeypatch.setattr(destroy_command, "AwsTeardown", lambda _, **__: account)
    monkeypatch.setattr(destroy_command, "AwsPrices", lambda _, **__: None)
    grace = () if "--grace" in options else ("--grace", "0")
    return run("destroy", *GOOD, *grace, *options, stdin=typed)


def test_prompt_shows_deleted_and_retained_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeTeardown()
    ended = destroy(monkeypatch, account, typed="n\n")
    assert account.changes == []
    assert ended.exit_code == ExitCode.NOT_READY
    assert ended.stdout.index(RECORDS) < ended.stdout.index("retained in") < ended.stdout.index(CACHE)
    assert "Nothing was destroyed." in ended.stdout


OWN_DATA = DescribedResource(kind="AWS::S3::Bucket", resource_id="own-data", must_be_empty=True)


def with_own_bucket(objects: int, **changes: Any) -> FakeTeardown:
    """An account whose cluster's stack has a bucket of the app with some objects."""
    account = FakeTeardown(stacks=[cluster_stack(resources=(*cluster_stack().resources, OWN_DATA))], work=[], **changes)
    account.objects["own-data"] = objects
    account.tags["own-data"] = {}
    return account


@pytest.mark.parametrize("options", [(), ("--yes",), ("--yes", "--json")])
def test_full_bucket_of_the_app_is_refused_before_the_prompt(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    account = with_own_bucket(objects=1)
    ended = destroy(monkeypatch, account, *options)
    assert ended.exit_code == ExitCode.NOT_READY
    assert account.changes == []
    printed = " ".join(ended.output.split())
    assert "Nothing was destroyed: CloudFormation deletes these resources of your app only if they are empty" in printed
    assert "aws s3 rm s3://own-data --recursive" in printed
    assert "The nodes keep running: `trn sleep` terminates them." in printed
    assert "Destroy this?" not in printed


def test_unread_content_of_the_app_is_unknown_before_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    vault = DescribedResource(kind="AWS::Backup::BackupVault", resource_id="own-vault", must_be_empty=True)
    account = FakeTeardown(stacks=[cluster_stack(resources=(*cluster_stack().resources, vault))], work=[])
    printed = " ".join(destroy(monkeypatch, account, typed="n\n").stdout.split())
    assert "backup vault own-vault deleted only if it is empty" in printed
    assert "unknown: whether the backup vault own-vault is empty: `trn` does not read" in printed


def test_empty_bucket_of_the_app_is_deleted_with_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    account = with_own_bucket(objects=0)
    ended = destroy(monkeypatch, account, "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert account.stacks == []


def test_unread_bucket_of_the_app_is_unknown_before_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    account = with_own_bucket(objects=1, denied=frozenset({"is_empty"}))
    printed = destroy(monkeypatch, account, typed="n\n").stdout
    assert "unknown: whether the bucket own-data is empty: not allowed: is_empty" in printed
    assert "deleted only if it is empty" in printed


def test_job_on_ending_nodes_is_named_before_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = {"TrnClusterStack": "fit-1 has not ended (running)"}
    monkeypatch.setattr(destroy_command, "running_job_sentence", lambda _, __, stack: sentences.get(stack))
    ended = destroy(monkeypatch, FakeTeardown(), typed="n\n")
    assert ended.stdout.index("\nJob: fit-1 has not ended (running).\n") < ended.stdout.index("Destroy this?")


def test_yes_destroys_without_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeTeardown()
    ended = destroy(monkeypatch, account, "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert account.stacks == []
    assert f"No resources of {OWN_CLUSTER} are left in us-west-2 except retained ones." in ended.stdout


@pytest.mark.parametrize(("own", "is_destroyed"), [("this", True), ("other", False), (None, False)])
def test_cluster_of_another_project_is_not_destroyed(
    monkeypatch: pytest.MonkeyPatch, own: str | None, is_destroyed: bool
) -> None:
    account = FakeTeardown(stacks=[cluster_stack(project="this")])
    ended = destroy(monkeypatch, account, "--yes", *(("-c", f"trn:project_id={own}") if own else ()))
    assert (ended.exit_code == ExitCode.OK, not account.stacks) == (is_destroyed, is_destroyed)
    assert ("belongs to the project this" in ended.stderr) is not is_destroyed
    assert bool(account.changes) == is_destroyed


@pytest.mark.parametrize(("own", "is_destroyed"), [("this", True), ("other", False)])
def test_mistakes_in_settings_do_not_hide_the_project(
    monkeypatch: pytest.MonkeyPatch, clusters: FakeLocating, own: str, is_destroyed: bool
) -> None:
    settings = {"instance_type": "trn1.32xlarge", "nodes": 2, "project_id": "this"}
    clusters.recorded = [stack_record("TrnClusterStack", settings=settings)]
    account = FakeTeardown(stacks=[cluster_stack(project="this")])
    ended = destroy(monkeypatch, account, "--yes", "-c", "trn:nodes=many", "-c", f"trn:project_id={own}")
    assert (ended.exit_code == ExitCode.OK, not account.stacks) == (is_destroyed, is_destroyed), ended.output
    assert (f"not to that of this plan ({own})" in ended.stderr) is not is_destroyed


def test_named_cluster_of_another_project_is_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeTeardown(stacks=[cluster_stack(project="another")])
    assert destroy(monkeypatch, account, "--yes", "--cluster", OWN_CLUSTER).exit_code == ExitCode.OK
    assert account.stacks == []


def test_yes_without_a_named_cluster_destroys_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without cdk.json, the command would select the only cluster of the region."""
    monkeypatch.chdir(tmp_path)
    account = FakeTeardown()
    monkeypatch.setattr(destroy_command, "AwsTeardown", lambda _, **__: account)
    ended = run("destroy", "--yes", "--region", "us-west-2")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--yes needs a cluster: pass --cluster NAME" in ended.output
    assert account.changes == []


def test_nodes_of_a_deleted_stack_of_an_app_are_destroyed(
    monkeypatch: pytest.MonkeyPatch, clusters: FakeLocating
) -> None:
    """The nodes are found by their tags: the stack does not exist, and no cdk.json has its name."""
    clusters.nodes = [
        ClusterNode(
            instance_id="i-1",
            cluster=OWN_CLUSTER,
            instance_type="trn1.2xlarge",
            state="running",
            product="",
            stack="App",
        )
    ]
    group = DescribedResource(kind="AWS::AutoScaling::AutoScalingGroup", resource_id=GROUP, kept=True)
    stack = cluster_stack(name="App", status="DELETE_COMPLETE", resources=(group,))
    account = FakeTeardown(stacks=[], deleted=[stack], leftovers=[], work=[])
    monkeypatch.setattr(destroy_command, "AwsTeardown", lambda _, **__: account)
    monkeypatch.setattr(destroy_command, "AwsPrices", lambda _, **__: None)
    named = ("--region", "us-west-2", "--cluster", OWN_CLUSTER)
    ended = run("destroy", *named, "--grace", "0", "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert f"No stack in us-west-2 belongs to {OWN_CLUSTER}, but nodes do" in ended.stderr
    assert "2 running" in ended.stdout
    assert account.group.instances == {}


def test_nothing_to_destroy_is_shown_and_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeTeardown(stacks=[], leftovers=[], work=[])
    ended = destroy(monkeypatch, account)
    assert ended.exit_code == ExitCode.OK
    assert f"There are no resources of {OWN_CLUSTER} to destroy in us-west-2." in ended.stdout


@pytest.mark.parametrize(
    ("account", "code", "message"),
    [
        (FakeTeardown(refused=frozenset({"delete_leftover"})), ExitCode.NOT_READY, "refused: delete_leftover"),
        (FakeTeardown(denied=frozenset({"snapshot"})), ExitCode.UNKNOWN, "unknown: not allowed: snapshot"),
    ],
)
def test_left_or_unknown_resources_decide_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, account: FakeTeardown, code: ExitCode, message: str
) -> None:
    ended = destroy(monkeypatch, account, "--yes")
    assert ended.exit_code == code
    assert message in ended.output


def test_interruption_reports_that_destroy_can_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(destroy_command, "take_down", interrupted)
    ended = destroy(monkeypatch, FakeTeardown(), "--yes")
    assert ended.exit_code == ExitCode.INTERRUPTED
    assert "Run `trn destroy` again: it continues." in ended.stderr


def test_json_reports_deleted_and_retained_resources_and_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = destroy(monkeypatch, FakeTeardown(), "--yes", "--json")
    printed = json.loads(ended.stdout)
    assert printed["verdict"] == "gone"
    assert {"what": "nodes", "name": "TrnClusterStack-Group", "detail": "2 running"} in printed["to_delete"]
    assert [kept["resource_id"] for kept in printed["kept"]] == [CACHE]
    assert {step["state"] for step in printed["steps"]} == {"done"}


@pytest.mark.parametrize(
    ("options", "grace"),
    [((), timedelta(minutes=2)), (("--grace", "90s"), timedelta(seconds=90)), (("--grace", "0"), timedelta())],
)
def test_running_nodes_get_the_shown_notice(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], grace: timedelta
) -> None:
    notices: list[timedelta] = []

    def take_down(*_: object, **how: Any) -> tuple[()]:
        notices.append(how["grace"])
        return ()

    monkeypatch.setattr(destroy_command, "take_down", take_down)
    monkeypatch.setattr(destroy_command, "AwsTeardown", lambda _, **__: FakeTeardown())
    monkeypatch.setattr(destroy_command, "AwsPrices", lambda _, **__: None)
    ended = run("destroy", *GOOD, "--yes", *options)
    assert notices == [grace]
    assert ("The nodes are notified" in ended.stdout) == bool(grace)


@pytest.mark.parametrize("grace", ["2h", "61m", ""])
def test_invalid_grace_is_refused_with_allowed_values(monkeypatch: pytest.MonkeyPatch, grace: str) -> None:
    account = FakeTeardown()
    ended = destroy(monkeypatch, account, "--yes", "--grace", grace)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"--grace: got {grace!r}" in ended.stderr
    assert "such as 90s or 5m, at most 60m" in ended.stderr
    assert account.changes == []


@pytest.mark.parametrize(("to_delete", "nodes_end"), [((DeletedItem(what="nodes", name="group"),), True), ((), False)])
def test_shared_stack_mentions_ending_nodes_only_if_it_has_some(
    to_delete: tuple[DeletedItem, ...], nodes_end: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    others = DescribedResource(kind="AWS::EC2::VPC", resource_id="vpc-1", other=True)
    stack = StackDescription(name="Web", stack_id="id", status="CREATE_COMPLETE", cluster=None, resources=(others,))
    show_inventory(
        Inventory(to_delete=to_delete, kept=(), unknown=()), Scope(cluster="c", existing=(stack,)), "us-west-2"
    )
    shown = capsys.readouterr().out
    assert "The stack Web stays: it also has 1 AWS::EC2::VPC" in shown
    assert ("Its nodes are terminated." in shown) is nodes_end


def test_stack_of_another_cluster_is_named_with_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeTeardown(stacks=[cluster_stack(cluster=OTHER_CLUSTER)], leftovers=[], work=[])
    ended = destroy(monkeypatch, account, "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"belongs to the cluster {OTHER_CLUSTER}, not to {OWN_CLUSTER}: it is not touched" in ended.stdout


@pytest.mark.parametrize("before", [{}, {"stacks": [], "work": [], "leftovers": []}], ids=["stacks", "nothing else"])
def test_billed_nodes_of_an_eks_node_group_are_left(monkeypatch: pytest.MonkeyPatch, before: dict[str, Any]) -> None:
    clause = "the EKS node group Trn1 runs 4 billed nodes"
    ended = destroy(monkeypatch, FakeTeardown(outliving=[clause], **before), "--yes")
    printed = " ".join(ended.stdout.split())
    assert ended.exit_code == ExitCode.NOT_READY
    assert f"nodes outside the stacks: stuck: {clause}" in printed
    assert "Resources of trn-pilot are left" in printed
    unread = destroy(monkeypatch, FakeTeardown(denied=frozenset(["outliving_nodes"]), **before), "--yes")
    assert unread.exit_code == ExitCode.UNKNOWN
