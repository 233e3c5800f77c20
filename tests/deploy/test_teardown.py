"""`trn destroy`, killed at any change and rerun, leaves nothing of the cluster and everything of others."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from tests.constructs.synth import ROOT, cluster_template
from tests.constructs.training import training_template
from tests.core.aws_stubs import submit_job
from tests.deploy.account import Account, Run, differences, outputs
from tests.deploy.killing_proxy import KillingProxy, killing_proxy
from tests.deploy.remains import Foreign, create_foreign_resources, leave_remains
from tests.forked import run_trn
from tools.demo.inventory import Inventory
from trainium_core.engines.sagemaker.engine import SAGEMAKER
from trainium_local.environment import safe_environment, tool_folders
from trainium_local.server import Settings

PLAN = ("-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:region=us-west-2", "-c", "trn:nodes=2")
DESTROY = ("--yes", "--grace", "1s")
KILLED = -9


@dataclass(frozen=True, kw_only=True)
class Shared:
    """An account with resources of others, and its proxy."""

    account: Account
    proxy: KillingProxy
    foreign: Foreign
    before: Inventory

    def destroy(self, *options: str) -> Run:
        """Run `trn destroy` through the proxy."""
        by_proxy = replace(self.account.aws.connection, endpoint=self.proxy.url)
        run = run_trn(
            ["destroy", *PLAN, *options],
            folder=self.account.folder,
            # Wide enough that each row of a table is one line.
            environment=safe_environment(os.environ, by_proxy, tools=tool_folders(ROOT)) | {"COLUMNS": "250"},
            started=self.proxy.set_victim,
        )
        return Run(code=run.returncode, printed=run.stdout)

    def deploy(self) -> None:
        self.account.deploy(cluster_template(nodes=2))
        leave_remains(self.account)


@pytest.fixture(scope="module")
def shared(start_account: Callable[[Settings], Account]) -> Iterator[Shared]:
    account = start_account(Settings())
    foreign = create_foreign_resources(account)
    with killing_proxy(account.aws.connection) as proxy:
        yield Shared(account=account, proxy=proxy, foreign=foreign, before=account.inventory())


CHANGES = (
    "Put",
    "UpdateAutoScalingGroup",
    "Post",
    "Delete",
    "Post",
    "DeleteNetworkInterface",
    "DeleteStack",
    "DeleteLogGroup",
    "DeleteLogGroup",
    "DeleteParameter",
    "DeleteSnapshot",
)
"""The changes that destroy a cluster with its leftovers. Put, Post and Delete are requests to S3: the notice, the
deletion of objects, and the end of an upload.
"""


def test_destroy_killed_at_every_change_resumes_and_leaves_nothing(shared: Shared) -> None:
    """The response to each change is lost once. A lost request would leave the state after the previous change."""
    state = shared.foreign.state()
    shared.deploy()
    changes: list[str] = []
    while True:
        shared.proxy.arm(fatal=1)
        run = shared.destroy(*DESTROY)
        if run.code != KILLED:
            break
        changes += shared.proxy.changes
    assert run.code == 0, run.printed
    assert tuple(changes) == CHANGES
    assert differences(shared.before, shared.account.inventory()) == []
    assert shared.foreign.state() == state


def test_unreadable_snapshots_are_unknown_and_block_nothing_else(shared: Shared) -> None:
    state = shared.foreign.state()
    shared.deploy()
    shared.proxy.arm(fatal=0, denied=frozenset({"DescribeSnapshots"}))
    run = shared.destroy("--yes", "--grace", "0")
    assert run.code == 3, run.printed
    printed = " ".join(run.printed.split())
    assert "snapshots: unknown: not allowed to read: the permission ec2:DescribeSnapshots is missing" in printed
    shared.proxy.arm(fatal=0)
    assert shared.destroy("--yes", "--grace", "0").code == 0
    assert shared.proxy.changes == ["DeleteSnapshot"]
    assert differences(shared.before, shared.account.inventory()) == []
    assert shared.foreign.state() == state


def test_retained_cache_stays_and_is_shown_with_its_price_each_time(shared: Shared) -> None:
    shared.account.deploy(cluster_template(nodes=2, cache_at_destroy="retain"))
    cache = outputs(shared.account.cluster())["CompileCache"].split("/")[2]
    s3 = shared.account.aws.client("s3")
    s3.put_object(Bucket=cache, Key="neuron-compile-cache/graph.neff", Body=b"compiled")
    shared.proxy.arm(fatal=0)
    runs = [shared.destroy(*DESTROY), shared.destroy(*DESTROY)]
    assert [run.code for run in runs] == [0, 0]
    assert all(re.search(rf"{cache} +8 bytes +< \$0.01", run.printed.partition("retained in")[2]) for run in runs)
    assert "There are no resources of trn-pilot to destroy in us-west-2." in runs[1].printed
    assert s3.get_object(Bucket=cache, Key="neuron-compile-cache/graph.neff")["Body"].read() == b"compiled"
    s3.delete_object(Bucket=cache, Key="neuron-compile-cache/graph.neff")
    s3.delete_bucket(Bucket=cache)
    assert differences(shared.before, shared.account.inventory()) == []


def test_queued_job_ends_before_the_stack_of_its_role_is_deleted(shared: Shared) -> None:
    shared.account.deploy(training_template(), SAGEMAKER.construct_id)
    queue = outputs(shared.account.cluster(SAGEMAKER.construct_id))["JobQueueArn"]
    submit_job(queue, "trn-pilot--a", instances=3, aws=shared.account.aws.client)
    shared.proxy.arm(fatal=0)
    run = shared.destroy(*DESTROY)
    assert run.code == 0, run.printed
    assert shared.proxy.changes == ["terminateservicejob", "DeleteStack"]
    assert differences(shared.before, shared.account.inventory()) == []
