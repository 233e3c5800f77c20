"""An audit of an embedded AWS finds every leftover, and nothing that belongs to others."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from tests.constructs.synth import cluster_template
from tests.core.plans import from_settings
from tests.deploy import assembly
from tests.deploy.account import BOOTSTRAP_PARAMETERS, Account, bootstrap_template
from tests.deploy.leftovers import ALWAYS_ENDED, CREATORS, create_all
from tests.local.conftest import EmbeddedAws
from trainium_core.audit.aws_account import AwsAuditedAccount
from trainium_core.audit.listings.registry import LISTINGS
from trainium_core.audit.outcome import Audit, Audited
from trainium_core.audit.runner import audit
from trainium_core.naming import STACK_NAME
from trainium_local.environment import safe_environment
from trainium_local.server import Settings
from trainium_runtime.aws_service import Clients

OWN, OTHER = "trn-pilot", "somebody-else"


def audit_of(aws: EmbeddedAws, *, denied: str = "") -> Audit:
    """An audit with a separate account object, as in the command.

    Args:
        aws: The embedded AWS.
        denied: A call that is answered with 403, such as ec2.DescribeVolumes. Default: none.
    """
    with pytest.MonkeyPatch.context() as environment:
        for name, value in safe_environment(os.environ, aws.connection).items():
            environment.setenv(name, value)
        session = boto3.Session()
        if denied:
            session.events.register(f"before-call.{denied}", refuse)
        account = AwsAuditedAccount(aws.region, clients=Clients(session))
        return audit(
            from_settings(cluster_name=OWN),
            account,
            stack_names=(STACK_NAME,),
            now=datetime.now(UTC),
        )


class Forbidden:
    """An HTTP response for botocore."""

    status_code = 403


def refuse(**_: Any) -> tuple[Forbidden, dict[str, Any]]:
    return Forbidden(), {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": {}}


def names(audited: Audit, kind: str) -> set[str]:
    return {one.resource.name for one in audited.of("left") if one.kind == kind}


BOOTSTRAPS = {"CDKToolkit": "hnb659fds", "MlToolkit": "mlteam"}
"""The stacks of `cdk bootstrap` in the account with leftovers, with their qualifiers."""


class Leftovers:
    """An account with one resource of each kind from the cluster, one from others, and two bootstrap stacks."""

    def __init__(self, aws: EmbeddedAws) -> None:
        for stack, qualifier in BOOTSTRAPS.items():
            parameters = {**BOOTSTRAP_PARAMETERS, "Qualifier": qualifier}
            values = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
            status = assembly.create(aws, stack, TemplateBody=bootstrap_template(), Parameters=values)
            assert status == "CREATE_COMPLETE", status
        self.own: Mapping[str, str] = create_all(aws.client, cluster=OWN, stack=STACK_NAME)
        self.foreign: Mapping[str, str] = create_all(aws.client, cluster=OTHER, stack="OtherStack")
        self.audit = audit_of(aws)


@pytest.fixture(scope="module")
def leftovers(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> Leftovers:
    return Leftovers(start_embedded_aws(Settings()))


def test_leftovers_cover_every_listed_kind() -> None:
    kinds = {listing.kind for listing in LISTINGS} - {ALWAYS_ENDED}
    assert kinds - CREATORS.keys() == set(), "add a function that makes one of these to tests/deploy/leftovers/"
    assert CREATORS.keys() - kinds == set(), "tests/deploy/leftovers/ makes these, which no audit looks for"


@pytest.mark.parametrize("kind", CREATORS)
def test_leftover_of_each_kind_is_found(leftovers: Leftovers, kind: str) -> None:
    assert leftovers.own[kind] in names(leftovers.audit, kind)


@pytest.mark.parametrize("kind", CREATORS)
def test_foreign_resources_are_never_listed(leftovers: Leftovers, kind: str) -> None:
    assert leftovers.foreign[kind] not in {one.resource.name for one in leftovers.audit.resources}


def test_audit_reads_every_kind_and_finds_leftovers(leftovers: Leftovers) -> None:
    assert leftovers.audit.not_read == ()
    assert leftovers.audit.verdict == "something left"


def test_resources_of_each_bootstrap_are_listed_with_their_stack(leftovers: Leftovers) -> None:
    shared = [(one.kind, *one.found_by) for one in leftovers.audit.of("shared")]
    for stack in BOOTSTRAPS:
        kinds = {kind for kind, found_by in shared if found_by == f"created by stack {stack}"}
        assert kinds == {"S3 bucket", "ECR repository", "SSM parameter", "IAM role"}


def one_of(audited: Audit, kind: str) -> Audited:
    return next(one for one in audited.of("left") if one.kind == kind)


def test_price_of_a_leftover_is_shown_if_known_and_not_zero_if_unknown(leftovers: Leftovers) -> None:
    assert one_of(leftovers.audit, "EBS snapshot").usd_per_month is None
    volume = leftovers.own["EBS volume"]
    (price,) = [one.usd_per_month for one in leftovers.audit.of("left") if one.resource.name == volume]
    assert f"{price:.2f}" == "0.80"


@pytest.fixture(scope="module")
def life(account: Account) -> tuple[Audit, Audit, Audit]:
    """Audits of one account: before a cluster, with the cluster, and after it, with only its cache left."""
    template = cluster_template(nodes=1, cache_at_destroy="retain")
    audit_of(account.aws)  # moto loads a service at its first request, which takes long on a busy machine.
    before = audit_of(account.aws)
    account.deploy(template)
    buckets = account.cluster().ids("AWS::S3::Bucket")
    during = audit_of(account.aws)
    account.destroy()
    after = audit_of(account.aws)
    s3 = account.aws.client("s3")
    for name in set(buckets) & {one["Name"] for one in s3.list_buckets()["Buckets"]}:
        s3.delete_bucket(Bucket=name)
    return before, during, after


def test_account_without_the_cluster_has_no_leftovers(life: tuple[Audit, Audit, Audit]) -> None:
    before, _, _ = life
    assert before.not_read == ()
    assert (before.verdict, before.of("left"), before.of("kept")) == ("nothing left", (), ())


def test_bootstrap_resources_are_listed_separately(life: tuple[Audit, Audit, Audit]) -> None:
    kinds = {one.kind for one in life[0].of("shared")}
    assert kinds == {"S3 bucket", "ECR repository", "SSM parameter", "IAM role"}


def test_existing_cluster_is_listed_with_its_stack_and_resources(life: tuple[Audit, Audit, Audit]) -> None:
    _, during, _ = life
    kinds = {one.kind for one in during.of("left")}
    assert {"stack", "EC2 instance", "EBS volume", "Auto Scaling group", "VPC", "IAM role", "log group"} <= kinds
    assert during.not_read == ()


def test_destroyed_stack_leaves_only_retained_resources(life: tuple[Audit, Audit, Audit]) -> None:
    _, _, after = life
    assert [one.resource.name for one in after.of("left")] == []
    assert [one.kind for one in after.of("kept")] == ["S3 bucket"]
    assert after.verdict == "nothing left"


@pytest.mark.parametrize(
    ("call", "what", "permission"),
    [
        ("ec2.DescribeVolumes", "EBS volume", "ec2:DescribeVolumes"),
        ("s3.ListBuckets", "S3 bucket", "s3:ListAllMyBuckets"),
        ("resource-groups-tagging-api.GetResources", "the tag index", "tag:GetResources"),
        (
            "cloudformation.DescribeStackEvents",
            "the stacks and the resources they created",
            "cloudformation:DescribeStackEvents",
        ),
    ],
)
def test_empty_account_with_a_denied_call_is_not_reported_empty(
    account: Account, call: str, what: str, permission: str
) -> None:
    result = audit_of(account.aws, denied=call)
    assert result.verdict == "unknown"
    assert [one.what for one in result.not_read] == [what]
    assert f"the permission {permission} is missing" in result.not_read[0].reason


def test_log_group_of_a_stack_with_a_longer_name_is_not_a_leftover(account: Account) -> None:
    logs = account.aws.client("logs")
    logs.create_log_group(logGroupName=f"/aws/lambda/{STACK_NAME}Two-Controller")
    try:
        assert audit_of(account.aws).of("left") == ()
    finally:
        logs.delete_log_group(logGroupName=f"/aws/lambda/{STACK_NAME}Two-Controller")


def test_audit_changes_nothing(account: Account) -> None:
    before = account.inventory()
    called = audit_of(account.aws).calls
    assert account.inventory() == before
    assert [call for call in called if not call.split(":")[1].startswith(("Describe", "List", "Get"))] == []
