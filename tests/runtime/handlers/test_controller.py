"""The controller reads the nodes and acts on them, against moto's Auto Scaling, EC2 and S3."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import SETTINGS, Look, PartialClient
from tests.runtime.handlers.fleet import BUCKET, PREFIX, Clock, Context, Fleet, client
from trainium_runtime.controller.reading import Consoles
from trainium_runtime.handlers import controller
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership


def object_event(key: str) -> dict[str, Any]:
    """The EventBridge event of an object (S3 user guide, EventBridge event message structure)."""
    return {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": BUCKET}, "object": {"key": key}},
    }


def membership() -> Membership | None:
    try:
        return Membership.from_json(client("s3").get_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY)["Body"].read().decode())
    except client("s3").exceptions.NoSuchKey:
        return None


def members() -> set[str]:
    found = membership()
    return set(found.instance_ids) if found else set()


def tags(instance: str) -> dict[str, str]:
    (found,) = client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    return {tag["Key"]: tag["Value"] for tag in found.get("Tags", []) if tag["Key"].startswith("trn:")}


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Logged lines, without levels."""
    logged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [{name: value for name, value in line.items() if name != "level"} for line in logged]


def test_verified_nodes_become_members_and_a_failed_one_is_replaced(look: Look, fleet: Fleet) -> None:
    first, second = fleet.instances
    fleet.verify(first, second, connected=False)
    look()
    assert membership() == Membership.of({instance: fleet.address(instance) for instance in (first, second)})
    assert tags(first) == {"trn:node": "verified", "trn:reason": ""}
    fleet.fail(second, "no driver")
    look(REPLACEMENTS="1")
    assert fleet.unhealthy == {second}
    assert tags(second) == {"trn:node": "failed", "trn:reason": "no driver; being replaced (1 of 1)"}


def test_concurrently_changed_membership_is_read_again(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    fleet.verify(*fleet.instances, connected=False)
    s3 = client("s3")
    reads: list[str] = []

    def get_object(**parameters: Any) -> Any:
        """Let another invocation write between the first read of the membership and the write."""
        if parameters["Key"] != MEMBERSHIP_KEY:
            return s3.get_object(**parameters)
        reads.append(parameters["Key"])
        try:
            return s3.get_object(**parameters)
        finally:
            if len(reads) == 1:
                s3.put_object(Bucket=BUCKET, Key=MEMBERSHIP_KEY, Body=Membership.of({"i-9": "10.0.0.9"}).to_json())

    clients["s3"] = PartialClient(s3, get_object=get_object)
    look()
    assert members() == set(fleet.instances)
    assert len(reads) == 2


def test_membership_that_others_always_change_is_an_error(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    fleet.verify(*fleet.instances, connected=False)
    changed = ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")
    clients["s3"] = PartialClient(client("s3"), put_object=changed)
    with pytest.raises(RuntimeError, match="in 5 attempts, another invocation changed the membership first"):
        look()


def test_membership_is_never_replaced_by_an_older_one(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    """Of two concurrent invocations, the one with the older view of the group must not write last."""
    fleet.verify(*fleet.instances, connected=False)
    autoscaling = clients["autoscaling"]
    calls: list[Any] = []

    def describe(**parameters: Any) -> Any:
        """Return the old group, but only after another invocation has looked at the current one."""
        calls.append(parameters)
        found = autoscaling.describe_auto_scaling_groups(**parameters)
        if len(calls) == 1:
            fleet.replace(fleet.instances[0])
            fleet.verify(*fleet.instances, connected=False)
            look()
        return found

    clients["autoscaling"] = PartialClient(autoscaling, describe_auto_scaling_groups=describe)
    look()
    assert members() == set(fleet.instances)


def test_node_that_leaves_during_a_look_is_ignored(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    fleet.fail(fleet.instances[0], "no driver")
    gone = ClientError({"Error": {"Code": "ValidationError", "Message": "not found"}}, "SetInstanceHealth")
    clients["autoscaling"] = PartialClient(clients["autoscaling"], set_instance_health=gone)
    look(REPLACEMENTS="1")


def test_instance_unknown_to_ec2_does_not_prevent_other_tags(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    fleet.verify(*fleet.instances, connected=False)
    calls: list[list[str]] = []

    def create_tags(**parameters: Any) -> None:
        assert members() == set(fleet.instances)
        calls.append(parameters["Resources"])
        if fleet.instances[0] in parameters["Resources"]:
            raise ClientError({"Error": {"Code": "InvalidInstanceID.NotFound"}}, "CreateTags")

    clients["ec2"] = PartialClient(client("ec2"), create_tags=create_tags)
    look()
    assert calls == [fleet.instances, *([instance] for instance in fleet.instances)]


def test_failed_step_is_reported_and_does_not_stop_others(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    first, second = fleet.instances
    fleet.verify(first, connected=False)
    fleet.fail(second, "no driver")
    refused = ClientError({"Error": {"Code": "AccessDenied"}}, "SetInstanceHealth")
    clients["autoscaling"] = PartialClient(clients["autoscaling"], set_instance_health=refused)
    with pytest.RaisesGroup(ClientError):
        look(REPLACEMENTS="1")
    assert tags(first)["trn:node"] == "verified"


@pytest.mark.parametrize("key", ["nodes/../cluster.json", "nodes/i-1.json", "other/i-1.json"])
def test_event_without_a_record_is_logged_and_ignored(look: Look, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    look(event=object_event(key))
    assert printed(capsys) == [{"ignored": key, "why": "not a record, or deleted since"}]


@pytest.mark.parametrize("event", [{"detail": []}, {"detail": {"object": 1}}, {"detail-type": ["x"]}], ids=str)
def test_event_of_unknown_form_causes_a_look(look: Look, fleet: Fleet, event: dict[str, Any]) -> None:
    fleet.verify(*fleet.instances, connected=False)
    look(event=event)
    assert membership() is not None


def test_event_about_a_node_does_not_read_the_pilot(look: Look, fleet: Fleet, clients: dict[str, Any]) -> None:
    """There can be thousands of such events, and the requests about the stack and the topic are throttled."""
    fleet.verify(*fleet.instances, connected=False)
    clients["sns"] = clients["cloudformation"] = None
    settings = {"TOPIC": "arn:aws:sns:us-west-2:123456789012:notices", "NODES": "2", "ASLEEP": "false"}
    look(event=object_event(f"{PREFIX}/{fleet.instances[0]}.json"), WARNING_HOURS="24", ENDS="100h", **settings)
    assert membership() is not None


@pytest.mark.parametrize("garbage", ["", "[" * 50_000, '{"state": "verified"}'])
def test_malformed_record_is_a_failed_node(look: Look, fleet: Fleet, garbage: str) -> None:
    first, second = fleet.instances
    fleet.verify(first, connected=False)
    fleet.write(second, garbage)
    look(event=object_event(f"{PREFIX}/{second}.json"), REPLACEMENTS="1")
    assert fleet.unhealthy == {second}
    assert tags(second)["trn:reason"].startswith("its record cannot be used: ")
    assert tags(first)["trn:node"] == "verified"


def test_error_on_the_console_of_a_silent_node_is_read_at_most_once_a_minute(
    clients: dict[str, Any], consoles: dict[str, str]
) -> None:
    consoles["i-1"] = "booting"
    read = Consoles(clients.__getitem__)
    assert read.failures(["i-1"], now=0) == {}
    consoles["i-1"] = "booting\r\ntrn-node FAILED: no driver\r\ntrn-node FAILED: still no driver\r\n"
    assert read.failures(["i-1"], now=59) == {}
    assert read.failures(["i-1"], now=60) == {"i-1": "still no driver"}


def test_consoles_of_few_nodes_are_read_in_one_look(clients: dict[str, Any], consoles: dict[str, str]) -> None:
    names = [f"i-{number}" for number in range(8)]
    consoles.update(dict.fromkeys(names, "trn-node FAILED: no driver"))
    read = Consoles(clients.__getitem__)
    assert [len(read.failures(names, now=now)) for now in (0, 15)] == [5, 8]


@pytest.mark.usefixtures("clients")
def test_function_reads_its_settings_from_its_environment(
    fleet: Fleet, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.fail(fleet.instances[0], "no driver")
    for name, value in {**SETTINGS, "REPLACEMENTS": "1"}.items():
        monkeypatch.setenv(name, value)
    controller.handle({}, Context(clock))
    assert fleet.unhealthy == {fleet.instances[0]}
