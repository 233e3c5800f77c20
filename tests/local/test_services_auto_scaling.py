"""Auto Scaling groups: launches, refused launches, terminations. Stand-ins of nodes: their records and jobs."""

import re
import sys
import time
import uuid
from base64 import b64encode
from collections.abc import Callable
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.core.job_bucket import FollowedStore
from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import Network, clear, make_network
from tests.userdata.test_job_preparation import wheel
from trainium_core.jobs.follow import JobFollower, LogLine
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.source_package import pack_directory
from trainium_local import CONSOLE_PATH
from trainium_local.server import Settings
from trainium_local.stand_ins.nodes import BOOT_SECONDS
from trainium_runtime.aws_service import Clients
from trainium_wire.job import Job
from trainium_wire.job_keys import job_keys
from trainium_wire.membership import Membership
from trainium_wire.node_record import NodeRecord


def activities(network: Network, name: str) -> list[dict[str, Any]]:
    return network.autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]


def test_group_launches_up_to_the_quota(network: Network, name: str) -> None:
    group = network.create_group(name, network.template(name, NetworkInterfaces=network.cards(8)), nodes=3)
    ids = [state["InstanceId"] for state in group["Instances"]]
    assert [len(network.instance(i)["NetworkInterfaces"]) for i in ids] == [8, 8]
    newest, *others = activities(network, name)
    assert [a["StatusCode"] for a in others] == ["Successful", "Successful"]
    assert newest["StatusCode"] == "Failed"
    assert "current vCPU limit of 256" in newest["StatusMessage"]


def test_launch_in_a_zone_without_the_type_is_a_failed_activity(embedded_aws: EmbeddedAws, name: str) -> None:
    elsewhere = make_network(embedded_aws, zone_id="usw2-az2")
    group = elsewhere.create_group(name, elsewhere.template(name), nodes=1)
    assert group["Instances"] == []
    assert "not supported in your requested Availability Zone" in activities(elsewhere, name)[0]["StatusMessage"]
    clear(elsewhere)


def test_launch_in_a_zone_without_capacity_is_a_failed_activity(chosen_aws: EmbeddedAws, name: str) -> None:
    empty = make_network(chosen_aws, zone_id="usw2-az1")
    group = empty.create_group(name, empty.template(name), nodes=1)
    assert group["Instances"] == []
    assert "do not have sufficient trn1.32xlarge capacity" in activities(empty, name)[0]["StatusMessage"]
    clear(empty)


def test_desired_capacity_above_maximum_is_refused(network: Network, name: str) -> None:
    network.create_group(name, network.template(name), nodes=1)
    with pytest.raises(ClientError, match="value 2 is above max value 1 for the AutoScalingGroup"):
        network.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=2)


def test_newest_instance_is_terminated_first_by_policy(network: Network, name: str) -> None:
    def ids() -> set[str]:
        return {state["InstanceId"] for state in network.group_named(name)["Instances"]}

    network.autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateId": network.template(name, "trn1.2xlarge"), "Version": "$Latest"},
        MinSize=2,
        MaxSize=4,
        TerminationPolicies=["NewestInstance"],
        VPCZoneIdentifier=network.subnet,
    )
    resize = network.autoscaling.update_auto_scaling_group
    oldest = ids()
    resize(AutoScalingGroupName=name, DesiredCapacity=4)
    resize(AutoScalingGroupName=name, DesiredCapacity=2)
    assert ids() == oldest


def test_terminations_are_in_the_history_of_the_group(network: Network, name: str) -> None:
    group = network.create_group(name, network.template(name, "trn1.2xlarge"), nodes=1)
    (instance,) = [state["InstanceId"] for state in group["Instances"]]
    network.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
    newest = activities(network, name)[0]
    assert (newest["Description"], newest["StatusCode"]) == (f"Terminating EC2 instance: {instance}", "Successful")


def test_deleted_group_terminates_protected_instances_too(network: Network, name: str) -> None:
    group = network.create_group(name, network.template(name, "trn1.2xlarge"), nodes=1)
    (instance,) = [state["InstanceId"] for state in group["Instances"]]
    network.autoscaling.set_instance_protection(
        AutoScalingGroupName=name, InstanceIds=[instance], ProtectedFromScaleIn=True
    )
    network.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    assert network.instance(instance)["State"]["Name"] == "terminated"


def test_group_launches_its_named_template_version(network: Network, name: str) -> None:
    template = network.template(name)
    second = {"ImageId": network.image, "InstanceType": "trn1.2xlarge"}
    network.ec2.create_launch_template_version(LaunchTemplateId=template, LaunchTemplateData=second)
    (state,) = network.create_group(name, template, nodes=1, version="2")["Instances"]
    assert network.instance(state["InstanceId"])["InstanceType"] == "trn1.2xlarge"
    assert state["LaunchTemplate"]["Version"] == "2"


def test_nodes_spread_over_subnets_of_group(network: Network, name: str) -> None:
    other = network.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.1.0/24", AvailabilityZoneId="usw2-az1")
    network.ec2.create_placement_group(GroupName=name, Strategy="spread")
    network.autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateId": network.template(name), "Version": "$Latest"},
        MinSize=2,
        MaxSize=2,
        PlacementGroup=name,
        VPCZoneIdentifier=f"{network.subnet},{other['Subnet']['SubnetId']}",
    )
    states = network.group_named(name)["Instances"]
    assert {state["AvailabilityZone"] for state in states} == {"us-west-2b", "us-west-2d"}
    placed = [network.instance(state["InstanceId"])["Placement"]["GroupName"] for state in states]
    assert placed == [name, name]


def plain(bucket: str) -> str:
    return f"#!/bin/bash\nexport TRN_REPORT_URL=s3://{bucket}/nodes\n"


def multipart(bucket: str) -> str:
    message = MIMEMultipart()
    message.attach(MIMEText("#cloud-config\n", "cloud-config"))
    message.attach(MIMEText(f'#!/bin/bash\nTRN_REPORT_URL="s3://{bucket}/nodes/"\n', "x-shellscript", "utf-8"))
    return message.as_string()


def record_of_the_only_node(aws: EmbeddedAws, user_data: Callable[[str], str]) -> NodeRecord:
    bucket = f"records-{uuid.uuid4().hex[:8]}"
    aws.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    network = make_network(aws, zone_id="usw2-az4")
    template = network.template(bucket, UserData=b64encode(user_data(bucket).encode()).decode())
    (state,) = network.create_group(bucket, template, nodes=1)["Instances"]
    try:
        return wait_for_record(aws, bucket, f"nodes/{state['InstanceId']}.json")
    finally:
        clear(network)


def wait_for_record(aws: EmbeddedAws, bucket: str, key: str) -> NodeRecord:
    deadline = time.monotonic() + 480
    s3 = aws.client("s3")
    while True:
        try:
            return NodeRecord.from_json(s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode())
        except ClientError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize("user_data", [plain, multipart])
def test_stand_in_writes_record_of_launched_node(embedded_aws: EmbeddedAws, user_data: Callable[[str], str]) -> None:
    record = record_of_the_only_node(embedded_aws, user_data)
    assert record.state == "verified"


def test_record_names_the_stand_in(embedded_aws: EmbeddedAws) -> None:
    record = record_of_the_only_node(embedded_aws, plain)
    assert record.checks[0].found == "the embedded AWS: a stand-in, nothing ran on the instance"


def test_node_set_to_fail_reports_reason_and_the_next_is_verified(chosen_aws: EmbeddedAws) -> None:
    first = record_of_the_only_node(chosen_aws, plain)
    assert (first.state, first.reason) == ("failed", "neuron-ls shows 15 of 16 Neuron devices (missing: device 15)")
    assert record_of_the_only_node(chosen_aws, plain).state == "verified"


def test_stand_ins_report_reached_peers_once_in_a_membership(
    embedded_aws: EmbeddedAws, network: Network, name: str
) -> None:
    bucket, s3 = f"records-{name}", embedded_aws.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    configuration: dict[str, Any] = {"EventBridgeConfiguration": {}}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=configuration)
    template = network.template(name, UserData=b64encode(plain(bucket).encode()).decode())
    ids = [state["InstanceId"] for state in network.create_group(name, template, nodes=2)["Instances"]]
    assert {wait_for_record(embedded_aws, bucket, f"nodes/{i}.json").membership for i in ids} == {""}
    membership = Membership.of(dict.fromkeys(ids, "10.0.0.1"))
    s3.put_object(Bucket=bucket, Key="cluster.json", Body=membership.to_json().encode())
    deadline = time.monotonic() + 480
    while time.monotonic() < deadline:
        records = [wait_for_record(embedded_aws, bucket, f"nodes/{i}.json") for i in ids]
        if all(record.membership == membership.version for record in records):
            break
        time.sleep(0.05)
    peers = {check.found for record in records for check in record.checks if check.name == "peers"}
    assert ({record.membership for record in records}, peers) == ({membership.version}, {"1 of 1"})


def test_stand_ins_run_a_job_as_local_processes(
    embedded_aws: EmbeddedAws, network: Network, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, s3 = f"records-{name}", embedded_aws.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    configuration: dict[str, Any] = {"EventBridgeConfiguration": {}}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=configuration)
    template = network.template(name, UserData=b64encode(plain(bucket).encode()).decode())
    ids = [state["InstanceId"] for state in network.create_group(name, template, nodes=2)["Instances"]]
    for instance_id in ids:
        wait_for_record(embedded_aws, bucket, f"nodes/{instance_id}.json")
    membership = Membership.of(dict.fromkeys(ids, "10.0.0.1"))
    s3.put_object(Bucket=bucket, Key="cluster.json", Body=membership.to_json().encode())
    script = tmp_path / "hello.sh"
    script.write_text(
        'echo "$TRN_NODE_RANK of $TRN_NODES"; echo "TRN step=1 loss=2"; echo done >>"../outputs/out #1?"\n'
        f"command -v {Path(sys.executable).name}; python -c 'import click, tool'\n"
        "basename $TRN_RESUME_FROM; [ $TRN_ATTEMPT = 2 ] || exit 75\n"
    )
    earlier = job_keys("earlier")
    for checkpoint in ("step-9", "step-10"):
        s3.put_object(Bucket=bucket, Key=earlier.checkpoint(checkpoint), Body=b'{"parts": []}')
    job = Job(
        id="hello-20261122-120000",
        name="hello",
        cluster=name,
        submitted_at="2026-11-22T12:00:00Z",
        nodes=2,
        processes_per_node=1,
        command="bash hello.sh",
        setup=f"pip install --quiet --no-index {wheel(tmp_path.parent, '1.0')}",
        resume_from="earlier",
        retries=1,
        retry_on_exit_codes=(75,),
    )
    clients = Clients()
    monkeypatch.setattr(clients, "client", embedded_aws.client)
    jobs = FollowedStore("us-west-2", bucket, clients=clients)
    assert jobs.submit(job, pack_directory(tmp_path).archive, over=None)
    events = list(JobFollower(job.id, jobs, pause=lambda _: time.sleep(0.1)).events())
    state = events[-1]
    assert isinstance(state, JobState)
    assert state.status == "succeeded"
    assert len(state.attempts) == 2
    assert state.attempts[1].nodes[0].progress["loss"] == "2.0"
    lines = [event.text for event in events if isinstance(event, LogLine)]
    assert {"0 of 2", "tool 1.0", "step-10"} <= {*lines}
    assert "step-9" not in lines
    assert any(re.fullmatch(rf"/.*/node-0/venv/bin/{Path(sys.executable).name}", line) for line in lines)
    assert find_spec("tool") is None
    assert any("The job receives the notices of `trn` (SIGUSR1), but not those of AWS" in line for line in lines)
    found = jobs.files(job.id, "outputs")
    assert sorted(found) == ["outputs/node-1/out #1?", "outputs/out #1?"]
    # Each attempt appends a line, but the node that fails first may end the other one before.
    assert max(found.values()) == 10


def test_no_record_is_written_without_stand_ins(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> None:
    aws = start_embedded_aws(Settings(stand_in_nodes=False))
    bucket = "records"
    aws.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    network = make_network(aws, zone_id="usw2-az4")
    network.create_group(bucket, network.template(bucket, UserData=b64encode(plain(bucket).encode()).decode()), nodes=1)
    time.sleep(3 * BOOT_SECONDS)
    assert "Contents" not in aws.client("s3").list_objects_v2(Bucket=bucket)


def test_console_returns_what_was_stored(embedded_aws: EmbeddedAws, network: Network, name: str) -> None:
    ids = [state["InstanceId"] for state in network.create_group(name, network.template(name), nodes=2)["Instances"]]
    embedded_aws.connection.send("PUT", f"{CONSOLE_PATH}/{ids[0]}", b"trn-node FAILED: disk full\n")
    outputs = [network.ec2.get_console_output(InstanceId=i, Latest=True).get("Output", "") for i in ids]
    assert outputs == ["trn-node FAILED: disk full\n", ""]


def test_missing_bucket_does_not_fail_the_launch(network: Network, name: str) -> None:
    user_data = b64encode(plain(f"missing-{name}").encode()).decode()
    assert len(network.create_group(name, network.template(name, UserData=user_data), nodes=1)["Instances"]) == 1
