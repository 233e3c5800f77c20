"""The node reconciler against moto's Auto Scaling, EC2 and S3, which validate its requests."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import REGION, PartialClient
from tests.runtime.handlers.fleet import BUCKET, GROUP, NOON, PREFIX, Fleet, client
from trainium_runtime.handlers import node_reconciler
from trainium_runtime.handlers.node_reconciler import NodeReconciler
from trainium_runtime.node_store import NodeStore
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership

Reconcile = Callable[..., None]


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(nodes=2, region=REGION)


@pytest.fixture
def reconcile(fleet: Fleet) -> Reconcile:  # noqa: ARG001
    """Calls the node reconciler. `limit` is the maximum number of replacements; `clients` replace moto's."""

    def call(event: dict[str, Any] | None = None, *, limit: int = 0, now: Any = NOON, **clients: Any) -> None:
        reconciler = NodeReconciler(
            group_name=GROUP,
            limit=limit,
            store=NodeStore(clients.get("s3", client("s3")), BUCKET, PREFIX),
            autoscaling=clients.get("autoscaling", client("autoscaling")),
            ec2=clients.get("ec2", client("ec2")),
        )
        reconciler.reconcile(event or {}, now=now)

    return call


def object_event(key: str) -> dict[str, Any]:
    """The EventBridge event of an object (S3 user guide, EventBridge event message structure)."""
    return {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": BUCKET}, "object": {"key": key}},
    }


def block_event(detail_type: str, **detail: str) -> dict[str, Any]:
    """EC2's event for a Capacity Block (EC2 user guide, Monitor Capacity Blocks using EventBridge)."""
    named = {"capacity-reservation-id": "cr-0123456789abcdef0", "end-date": "2026-11-21T13:30:00Z", **detail}
    return {"source": "aws.ec2", "detail-type": detail_type, "detail": named}


def membership() -> Membership | None:
    try:
        return Membership.from_json(client("s3").get_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY)["Body"].read().decode())
    except client("s3").exceptions.NoSuchKey:
        return None


def unhealthy() -> set[str]:
    (group,) = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    return {i["InstanceId"] for i in group["Instances"] if i["HealthStatus"] == "Unhealthy"}


def tags(instance: str) -> dict[str, str]:
    (found,) = client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    return {tag["Key"]: tag["Value"] for tag in found.get("Tags", []) if tag["Key"].startswith("trn:")}


def address(instance: str) -> str:
    (found,) = client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    return found["PrivateIpAddress"]


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Logged lines, without levels."""
    logged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [{name: value for name, value in line.items() if name != "level"} for line in logged]


def test_membership_is_written_once_every_node_is_proven(reconcile: Reconcile, fleet: Fleet) -> None:
    first, second = sorted(fleet.instances)
    fleet.prove(first, connected=False)
    reconcile()
    assert membership() is None
    fleet.prove(second, connected=False)
    reconcile()
    assert membership() == Membership.of({first: address(first), second: address(second)})


def test_membership_has_the_addresses_of_ec2(reconcile: Reconcile, fleet: Fleet) -> None:
    """Otherwise a node could write a command as the address in its record, and every other node would run it."""
    for instance in fleet.instances:
        sent = {"instance_id": instance, "state": "proven", "address": "$(reboot)", "time": "now"}
        fleet.write(instance, json.dumps(sent))
    reconcile()
    written = membership()
    assert written is not None
    assert {member.address for member in written.members} == {address(i) for i in fleet.instances}


def test_incomplete_group_gets_no_membership(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.prove(*fleet.instances, connected=False)
    group = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
    group["AutoScalingGroups"][0]["DesiredCapacity"] = 3
    reconcile(autoscaling=PartialClient(client("autoscaling"), describe_auto_scaling_groups=group))
    assert membership() is None


def test_correct_membership_is_not_written_again(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.prove(*fleet.instances, connected=False)
    reconcile()
    forbidden = PartialClient(client("s3"), put_object=AssertionError("written"))
    reconcile(s3=forbidden)


def test_concurrently_changed_membership_is_read_again(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.prove(*fleet.instances, connected=False)
    s3 = client("s3")
    looks: list[str] = []

    class Racing(PartialClient):
        """Lets another invocation write between the first read of the membership and the write."""

        def get_object(self, **parameters: Any) -> Any:
            if parameters["Key"] != MEMBERSHIP_KEY:
                return s3.get_object(**parameters)
            looks.append(parameters["Key"])
            try:
                return s3.get_object(**parameters)
            finally:
                if len(looks) == 1:
                    s3.put_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY, Body=Membership.of({"i-9": "10.0.0.9"}).to_json())

    reconcile(s3=Racing(s3))
    written = membership()
    assert written is not None
    assert written.instance_ids == set(fleet.instances)
    assert len(looks) == 2


def test_terminating_node_is_not_marked_again(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.fail(fleet.instances[0], "no driver")
    reconcile(limit=2)
    again = PartialClient(client("autoscaling"), set_instance_health=AssertionError("marked again"))
    reconcile(limit=2, autoscaling=again)


def test_node_that_leaves_during_a_run_is_ignored(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.fail(fleet.instances[0], "no driver")
    gone = ClientError({"Error": {"Code": "ValidationError", "Message": "not found"}}, "SetInstanceHealth")
    reconcile(limit=1, autoscaling=PartialClient(client("autoscaling"), set_instance_health=gone))


def test_instances_are_tagged_with_their_state_and_reason(reconcile: Reconcile, fleet: Fleet) -> None:
    first, second = fleet.instances
    fleet.prove(first, connected=False)
    fleet.fail(second, "no driver")
    reconcile(limit=1)
    assert tags(first) == {"trn:node": "proven", "trn:reason": ""}
    assert tags(second) == {"trn:node": "failed", "trn:reason": "no driver; being replaced (1 of 1)"}


def test_instance_unknown_to_ec2_does_not_prevent_other_tags(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.prove(*fleet.instances, connected=False)
    calls: list[list[str]] = []

    class Forgetful(PartialClient):
        def create_tags(self, **parameters: Any) -> None:
            assert membership() is not None
            calls.append(parameters["Resources"])
            if fleet.instances[0] in parameters["Resources"]:
                raise ClientError({"Error": {"Code": "InvalidInstanceID.NotFound"}}, "CreateTags")

    reconcile(ec2=Forgetful(client("ec2")))
    assert calls == [fleet.instances, *([instance] for instance in fleet.instances)]


def test_record_with_a_lost_event_is_logged_once(
    reconcile: Reconcile, fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    """For example a record that was written before the EventBridge rule existed."""
    first, second = fleet.instances
    fleet.prove(first, connected=False)
    reconcile()
    reconcile()
    fleet.fail(second, "no driver")
    reconcile(object_event(f"{PREFIX}/{second}.json"))
    logged = [line["record"]["instance_id"] for line in printed(capsys) if "record" in line]
    assert logged == [first, second]


def test_membership_is_never_replaced_by_an_older_one(reconcile: Reconcile, fleet: Fleet) -> None:
    """Of two concurrent invocations, the one with the older view of the group must not write last."""
    fleet.prove(*fleet.instances, connected=False)
    old = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])

    class Slow(PartialClient):
        """Returns the old group, but only after another invocation has reconciled the current one."""

        calls = 0

        def describe_auto_scaling_groups(self, **parameters: Any) -> Any:
            self.calls += 1
            if self.calls > 1:
                return client("autoscaling").describe_auto_scaling_groups(**parameters)
            fleet.replace(fleet.instances[0])
            fleet.prove(*fleet.instances, connected=False)
            reconcile()
            return old

    reconcile(autoscaling=Slow(client("autoscaling")))
    written = membership()
    assert written is not None
    assert written.instance_ids == set(fleet.instances)


def test_record_of_foreign_instance_is_logged_and_ignored(
    reconcile: Reconcile, fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.fail("i-0aaaaaaaaaaaaaaaa", "gone since")
    reconcile(object_event(f"{PREFIX}/i-0aaaaaaaaaaaaaaaa.json"), limit=2)
    (line,) = printed(capsys)
    assert line["why"] == "the instance is not in the group"
    assert unhealthy() == set()


@pytest.mark.parametrize("key", ["nodes/../cluster.json", "nodes/i-1.json", "other/i-1.json"])
def test_event_without_a_record_is_logged_and_ignored(
    reconcile: Reconcile, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reconcile(object_event(key))
    assert printed(capsys) == [{"ignored": key, "why": "not a record, or deleted since"}]


@pytest.mark.parametrize("event", [{"detail": []}, {"detail": {"object": 1}}, {"detail-type": ["x"]}], ids=str)
def test_event_of_unknown_form_starts_a_run(reconcile: Reconcile, fleet: Fleet, event: dict[str, Any]) -> None:
    fleet.prove(*fleet.instances, connected=False)
    reconcile(event)
    assert membership() is not None


@pytest.mark.parametrize("garbage", ["", "[" * 50_000, '{"state": "proven"}'])
def test_malformed_record_is_a_failed_node(reconcile: Reconcile, fleet: Fleet, garbage: str) -> None:
    first, second = fleet.instances
    fleet.prove(first, connected=False)
    fleet.write(second, garbage)
    reconcile(object_event(f"{PREFIX}/{second}.json"), limit=1)
    assert unhealthy() == {second}
    assert tags(second)["trn:reason"].startswith("its record cannot be used: ")
    assert tags(first)["trn:node"] == "proven"


def test_failed_step_is_reported_and_does_not_stop_others(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.prove(*fleet.instances, connected=False)
    denied = ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "CreateTags")
    with pytest.RaisesGroup(ClientError):
        reconcile(ec2=PartialClient(client("ec2"), create_tags=denied))
    assert membership() is not None


@pytest.mark.parametrize(
    "detail_type", ["Capacity Block Expiration Warning", "Capacity Block Reservation Expiration Warning"]
)
def test_nodes_are_notified_of_the_end_of_their_capacity_block(
    reconcile: Reconcile, fleet: Fleet, detail_type: str
) -> None:
    fleet.prove(*fleet.instances, connected=False)
    reconcile()
    before = membership()
    reconcile(block_event(detail_type))
    after = membership()
    assert before is not None
    assert after is not None
    assert after.version == before.version
    (notice,) = after.notices
    assert (notice.kind, notice.at) == ("capacity-block-end", "2026-11-21T13:00:00Z")
    assert "cr-0123456789abcdef0 ends at 13:30 UTC" in notice.reason


def test_ultraserver_nodes_are_notified_of_their_earlier_end(
    reconcile: Reconcile, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = {i: {"InstanceType": "trn2u.48xlarge"} for i in fleet.instances}
    monkeypatch.setattr(node_reconciler, "describe_instances", lambda *_: described)
    reconcile(block_event("Capacity Block Expiration Warning"))
    written = membership()
    assert written is not None
    assert written.notices[0].at == "2026-11-21T12:30:00Z"


def test_outdated_notice_is_removed(reconcile: Reconcile) -> None:
    reconcile(block_event("Capacity Block Expiration Warning"))
    reconcile(now=NOON + timedelta(hours=3))
    written = membership()
    assert written is not None
    assert written.notices == ()


def test_warning_without_end_is_an_error_and_the_rest_is_done(reconcile: Reconcile, fleet: Fleet) -> None:
    fleet.prove(*fleet.instances, connected=False)
    with pytest.RaisesGroup(ValueError):
        reconcile(block_event("Capacity Block Expiration Warning", **{"end-date": "soon"}))
    assert tags(fleet.instances[0])["trn:node"] == "proven"


def test_function_reads_its_settings_from_its_environment(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.fail(fleet.instances[0], "no driver")
    settings = {"GROUP": GROUP, "REPLACEMENTS": "1", "RECORDS_BUCKET": BUCKET, "RECORDS_PREFIX": PREFIX}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.client", client)
    node_reconciler.environment_reconciler.cache_clear()
    node_reconciler.handle({}, None)
    assert unhealthy() == {fleet.instances[0]}
