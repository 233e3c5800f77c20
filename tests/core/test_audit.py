"""What an audit counts as left, retained, shared, and unknown."""

from decimal import Decimal

import pytest

from tests.core.fake_audit import CLUSTER, NOW, VOLUME, FakeAuditedAccount, FakeLister, resource, stack
from tests.core.plans import from_settings
from trainium_core.audit.outcome import Audit
from trainium_core.audit.ownership import STACK_ID_TAG
from trainium_core.audit.resource import Charge, ChargedItem, arn_key, arn_name, arn_type
from trainium_core.audit.runner import audit
from trainium_core.audit.stack_record import AuditedStack
from trainium_core.naming import STACK_NAME


def audited(account: FakeAuditedAccount) -> Audit:
    return audit(from_settings(cluster_name=CLUSTER), account, stack_names=(STACK_NAME,), now=NOW)


def audit_with(*found: object, **account: object) -> Audit:
    return audited(FakeAuditedAccount(lister=FakeLister(found=found), **account))  # type: ignore[arg-type]


def left(found: Audit) -> list[str]:
    return [entry.resource.name for entry in found.of("left")]


def made_by(name: str) -> dict[str, str]:
    """The CloudFormation tag of a resource whose stack no longer exists."""
    return {STACK_ID_TAG: f"arn:aws:cloudformation:us-west-2:123456789012:stack/{name}/forgotten"}


@pytest.mark.parametrize(
    ("found", "found_by"),
    [
        (audit_with(resource("vol-1", cluster=CLUSTER)), "tag trn:cluster"),
        (audit_with(resource("vol-1"), tags={resource("vol-1").arn: CLUSTER}), "tag trn:cluster"),
        (audit_with(resource("vol-1"), stacks=[stack(made={(VOLUME, "vol-1"): "DELETE_FAILED"})]), "created by stack"),
        (audit_with(resource(f"{STACK_NAME}-x", tags=made_by(STACK_NAME))), f"name {STACK_NAME}-..."),
    ],
    ids=["its own tag", "tag index", "stack", "forgotten stack"],
)
def test_resource_is_found_by_each_method(found: Audit, found_by: str) -> None:
    (entry,) = found.of("left")
    assert entry.found_by[0].startswith(found_by)
    assert found.verdict == "something left"


@pytest.mark.parametrize(
    "found",
    [
        audit_with(resource(f"{STACK_NAME}-x", cluster="another")),
        audit_with(resource(f"{STACK_NAME}-x"), tags={resource(f"{STACK_NAME}-x").arn: "another"}),
        audit_with(resource(f"{STACK_NAME}Two-x")),
        audit_with(resource(f"{STACK_NAME}-b-x"), stacks=[stack(f"{STACK_NAME}-b", cluster="another")]),
        audit_with(
            resource(f"{STACK_NAME}-x", tags={STACK_ID_TAG: stack().stack_id}),
            stacks=[stack(cluster="another")],
        ),
        audit_with(tags={"arn:aws:sqs:us-west-2:123456789012:queue": "another"}),
        audit_with(resource("vol-1"), stacks=[stack(made={("AWS::Other::Type", "vol-1"): "CREATE_COMPLETE"})]),
        audit_with(resource("vol-1"), stacks=[stack(cluster="another", made={(VOLUME, "vol-1"): "CREATE_COMPLETE"})]),
        audit_with(resource("vpc-1", cluster=CLUSTER), resource("vol-1", cluster="another", parents=("vpc-1",))),
    ],
    ids=[
        "name, with another's tag",
        "name, with another's tag in the index",
        "longer name",
        "a longer stack of another cluster",
        "CloudFormation's tag of another cluster's stack of the same name",
        "only in the index",
        "same ID of another type",
        "made by another cluster's stack of the same name",
        "in its VPC, with another's tag",
    ],
)
def test_resource_of_another_cluster_is_not_listed(found: Audit) -> None:
    assert set(left(found)) <= {"vpc-1"}


def test_nested_part_is_found() -> None:
    found = audit_with(resource("c", parents=("b",)), resource("b", parents=("a",)), resource("a", cluster=CLUSTER))
    assert sorted(left(found)) == ["a", "b", "c"]


def test_retained_resource_does_not_count_as_left() -> None:
    found = audit_with(resource("vol-1", cluster=CLUSTER), stacks=[stack(made={(VOLUME, "vol-1"): "DELETE_SKIPPED"})])
    assert (left(found), [entry.resource.name for entry in found.of("kept")]) == ([], ["vol-1"])
    assert found.verdict == "nothing left"


@pytest.mark.parametrize(("status", "group"), [("DELETE_FAILED", "left"), ("DELETE_SKIPPED", "kept")])
def test_undeleted_resource_without_a_listing_is_reported(status: str, group: str) -> None:
    found = audit_with(stacks=[stack(made={("AWS::SQS::Queue", "https://queue"): status})])
    (entry,) = found.resources
    assert (entry.group, entry.kind, entry.resource.name, entry.usd_per_month) == (
        group,
        "AWS::SQS::Queue",
        "https://queue",
        None,
    )


def test_resource_only_in_the_tag_index_has_an_unknown_price() -> None:
    (entry,) = audit_with(tags={"arn:aws:sqs:us-west-2:123456789012:queue": CLUSTER}).of("left")
    assert (entry.kind, entry.resource.name, entry.usd_per_month) == ("sqs", "queue", None)


def test_indexed_resource_is_left_if_its_listing_failed() -> None:
    found = audited(FakeAuditedAccount(lister=FakeLister(found=None), tags={resource("vol-1").arn: CLUSTER}))
    assert left(found) == ["vol-1"]


@pytest.mark.parametrize(
    ("account", "what", "permission"),
    [
        (FakeAuditedAccount(lister=FakeLister(found=None)), "EBS volume", "ec2:DescribeVolumes"),
        (FakeAuditedAccount(tags=None), "the tag index", "tag:GetResources"),
        (FakeAuditedAccount(stacks=None), "the stacks and the resources they created", "cloudformation:DescribeStacks"),
    ],
)
def test_one_denied_call_makes_the_verdict_unknown(account: FakeAuditedAccount, what: str, permission: str) -> None:
    found = audited(account)
    assert found.verdict == "unknown"
    assert [unread.what for unread in found.not_read] == [what]
    assert permission in found.not_read[0].reason


def test_unmeasured_resource_is_still_listed() -> None:
    lister = FakeLister(found=[resource("vol-1", cluster=CLUSTER)], denied=["vol-1"])
    found = audited(FakeAuditedAccount(lister=lister))
    assert left(found) == ["vol-1"]
    assert [unread.what for unread in found.not_read] == ["EBS volume vol-1"]


def test_resource_of_each_bootstrap_stack_is_shared_and_does_not_count() -> None:
    def made(name: str, volume: str, *, is_bootstrap: bool) -> AuditedStack:
        resources = {(VOLUME, volume): "CREATE_COMPLETE"}
        return stack(name, cluster=None, made=resources, deleted=False, is_bootstrap=is_bootstrap)

    bootstraps = [made(f"Toolkit{number}", f"vol-{number}", is_bootstrap=True) for number in (1, 2)]
    stacks = [*bootstraps, made("Another", "vol-3", is_bootstrap=False)]
    found = audit_with(*(resource(f"vol-{number}") for number in (1, 2, 3)), stacks=stacks)
    assert [(entry.resource.name, entry.found_by) for entry in found.of("shared")] == [
        ("vol-1", ("created by stack Toolkit1",)),
        ("vol-2", ("created by stack Toolkit2",)),
    ]
    assert found.verdict == "nothing left"


GP3 = ChargedItem(product="gp3-storage", quantity=Decimal(100))
NO_PRICE = ChargedItem(product="fsx-lustre-storage", quantity=Decimal(1200))


@pytest.mark.parametrize(
    ("charge", "usd"),
    [
        (Charge(items=(GP3,)), Decimal(8)),
        (Charge(items=(ChargedItem(product="interface-endpoint", quantity=Decimal(2)),)), Decimal("14.6")),
        (Charge(items=(GP3,), unpriced="IOPS"), None),
        (Charge(items=(GP3, NO_PRICE)), None),
    ],
    ids=["by the month", "by the hour", "a part has no price", "one of two has no price"],
)
def test_monthly_price_is_unknown_if_a_part_has_no_price(charge: Charge, usd: Decimal | None) -> None:
    (entry,) = audit_with(resource("vol-1", cluster=CLUSTER, charge=charge)).of("left")
    assert entry.usd_per_month == usd


@pytest.mark.parametrize(
    ("arn", "kind", "key", "name"),
    [
        ("arn:aws:s3:::my-bucket", "s3", "s3:my-bucket", "my-bucket"),
        ("arn:aws:logs:r:1:log-group:/a/b:*", "logs:log-group", "logs:log-group:/a/b", "/a/b"),
        (
            "arn:aws:autoscaling:r:1:autoScalingGroup:u:autoScalingGroupName/g",
            "autoscaling:autoScalingGroup",
            "autoscaling:autoScalingGroup:u:autoScalingGroupName/g",
            "u:autoScalingGroupName/g",
        ),
    ],
)
def test_arn_gives_type_key_and_name(arn: str, kind: str, key: str, name: str) -> None:
    assert (arn_type(arn), arn_key(arn), arn_name(arn)) == (kind, key, name)


def test_part_of_a_deleted_stack_resource_is_reported_as_left() -> None:
    backup = resource("backup-1", parents=("fs-1",))
    gone = stack(made={("AWS::FSx::FileSystem", "fs-1"): "DELETE_COMPLETE"})
    (found,) = audit_with(backup, resource("backup-2", parents=("fs-2",)), stacks=[gone]).of("left")
    assert (found.resource.name, found.found_by) == ("backup-1", ("part of fs-1",))
