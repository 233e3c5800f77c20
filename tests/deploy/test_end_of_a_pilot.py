"""Pilots that end automatically: the schedule invokes the real function, and the clock is set forward."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import RemovalPolicy
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.trn_cluster_stack import TrnClusterStack
from tests.constructs.synth import Template, cluster_template, template_of
from tests.core.aws_stubs import IMAGE_MANIFEST
from tests.deploy.account import Account, differences, instance_ids, outputs
from tests.deploy.clock import MovableClock
from tests.deploy.command import run_trn
from tests.deploy.test_sleep_and_wake import OPTIONS
from trainium_core import Plan
from trainium_core.naming import STACK_NAME
from trainium_local.server import Settings
from trainium_runtime.naming import STOPPED_TAG
from trainium_runtime.pilot_end import utc_text
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership

REGION_WITH_FUTURE_BLOCK = "ap-southeast-4"
RUN = 6
"""Minutes in which the schedule runs at least once."""


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """A deployed cluster, its clock, and a queue with the messages of the topic."""

    account: Account
    clock: MovableClock
    queue: str
    received: list[str] = field(default_factory=list[str])

    @property
    def nodes(self) -> int:
        return len(instance_ids(self.account.cluster()))

    @property
    def subjects(self) -> list[str]:
        """The subjects of all messages of the topic so far."""
        sqs = self.account.aws.client("sqs")
        while messages := sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                self.received.append(json.loads(message["Body"])["Subject"])
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
        return self.received

    @property
    def tags(self) -> dict[str, str]:
        topic = outputs(self.account.cluster())["Notices"]
        tags = self.account.aws.client("sns").list_tags_for_resource(ResourceArn=topic)["Tags"]
        return {tag["Key"]: tag["Value"] for tag in tags}

    def notices_to_jobs(self, *, timeout: float = 0) -> list[str]:
        """The kinds of the notices in the membership. Waits `timeout` seconds at most for the controller."""
        place = {"Bucket": outputs(self.account.cluster())["NodeRecords"], "Key": MEMBERSHIP_KEY}
        deadline = time.monotonic() + timeout
        while True:
            body = self.account.aws.client("s3").get_object(**place)["Body"].read().decode()
            kinds = [notice.kind for notice in Membership.from_json(body).notices]
            if kinds or time.monotonic() > deadline:
                return kinds
            time.sleep(0.2)

    def destroy(self) -> None:
        self.account.destroy()


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    return start_account(Settings(iam="enforced"))


@pytest.fixture(scope="module")
def clock(account: Account) -> MovableClock:
    return MovableClock(connection=account.aws.connection)


def deploy_pilot(account: Account, clock: MovableClock, template: Template | None = None, **settings: Any) -> Pilot:
    account.deploy(template or cluster_template(**settings))
    queue = account.aws.client("sqs").create_queue(QueueName="notices")["QueueUrl"]
    arn = f"arn:aws:sqs:{account.aws.region}:123456789012:notices"
    account.aws.client("sns").subscribe(TopicArn=outputs(account.cluster())["Notices"], Protocol="sqs", Endpoint=arn)
    pilot = Pilot(account=account, clock=clock, queue=queue)
    pilot.subjects.clear()  # Messages of an earlier pilot.
    return pilot


def status(account: Account) -> str | None:
    """Status of the stack; None once it is deleted."""
    client = account.aws.client("cloudformation")
    there = [stack for stack in client.describe_stacks()["Stacks"] if stack["StackName"] == STACK_NAME]
    return there[0]["StackStatus"] if there else None


def test_pilot_is_warned_stopped_and_deleted_on_time(account: Account, clock: MovableClock) -> None:
    foreign = json.dumps({"Resources": {"Kept": {"Type": "AWS::SNS::Topic"}}})
    account.aws.client("cloudformation").create_stack(StackName="Foreign", TemplateBody=foreign)
    before = account.inventory()
    deployed = clock.now
    pilot = deploy_pilot(account, clock, ends="40h", ends_action="destroy", notify_email="someone@example.com")
    assert pilot.nodes == 2

    clock.forward(hours=19)
    assert pilot.subjects == []
    clock.forward(hours=2)  # For a pilot of less than 48 h, the warning is sent at half time.
    assert pilot.subjects == ["trn-pilot ends in 18 h"]
    clock.forward(minutes=RUN)
    assert pilot.subjects == ["trn-pilot ends in 18 h"]
    assert pilot.nodes == 2

    assert pilot.notices_to_jobs() == []

    clock.forward_to(deployed + timedelta(hours=39, minutes=50))
    assert pilot.notices_to_jobs(timeout=480) == ["pilot-stop"]
    assert pilot.nodes == 2
    clock.forward(minutes=10 + RUN)
    assert pilot.nodes == 0
    assert pilot.subjects[1:] == ["trn-pilot nodes stopped"]
    assert status(account) == "CREATE_COMPLETE"
    clock.forward(minutes=RUN)
    deadline = time.monotonic() + 480
    while status(account) is not None and time.monotonic() < deadline:
        time.sleep(0.5)
    assert status(account) is None
    assert pilot.subjects[2:] == ["trn-pilot is being deleted"]
    assert differences(before, account.inventory()) == []


class _WithData(TrnClusterStack):
    """The cluster with a bucket and a repository of the app, which nothing empties."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan)
        s3.Bucket(self, "Data", removal_policy=RemovalPolicy.DESTROY)
        ecr.Repository(self, "Images", removal_policy=RemovalPolicy.DESTROY)


def test_content_that_blocks_the_end_is_named_until_it_is_deleted(account: Account, clock: MovableClock) -> None:
    before, deployed = account.inventory(), clock.now
    template = template_of(_WithData, STACK_NAME, {"ends": "8h", "ends_action": "destroy"})
    pilot = deploy_pilot(account, clock, template)
    (bucket,) = [name for name in account.cluster().ids("AWS::S3::Bucket") if "-data" in name]
    (repository,) = account.cluster().ids("AWS::ECR::Repository")
    s3_client, ecr_client = account.aws.client("s3"), account.aws.client("ecr")
    s3_client.put_object(Bucket=bucket, Key="data", Body=b"kept")
    ecr_client.put_image(repositoryName=repository, imageManifest=IMAGE_MANIFEST, imageTag="first")
    clock.forward_to(deployed + timedelta(hours=8, minutes=RUN))
    clock.forward(minutes=RUN)
    deadline = time.monotonic() + 480
    while status(account) != "DELETE_FAILED" and time.monotonic() < deadline:
        time.sleep(0.5)
    assert pilot.subjects[-1] == "trn-pilot is being deleted"

    shown = run_trn(account, "status", *OPTIONS)
    assert (shown.code, "DELETE_FAILED" in shown.printed) == (1, True), shown.printed
    audited = run_trn(account, "audit", *OPTIONS, environment={"COLUMNS": "250"})
    assert (audited.code, bucket in audited.printed, repository in audited.printed) == (1, True, True), audited.printed
    refused = run_trn(account, "destroy", "--yes", *OPTIONS, environment={"COLUMNS": "250"})
    assert (refused.code, bucket in refused.problems, repository in refused.problems) == (1, True, True)

    s3_client.delete_object(Bucket=bucket, Key="data")
    ecr_client.batch_delete_image(repositoryName=repository, imageIds=[{"imageTag": "first"}])
    destroyed = run_trn(account, "destroy", "--yes", *OPTIONS)
    assert destroyed.code == 0, destroyed.printed
    assert differences(before, account.inventory()) == []


def test_spent_budget_stops_the_nodes_until_it_is_raised(account: Account, clock: MovableClock) -> None:
    pilot = deploy_pilot(account, clock, budget_usd=500, budget_action="stop")
    sns = account.aws.client("sns")
    (topic,) = [arn for arn in account.cluster().ids("AWS::SNS::Topic") if "Spent" in arn]
    sns.publish(TopicArn=topic, Message="Budget Name: another one")
    assert pilot.nodes == 2
    (budget,) = account.cluster().ids("AWS::Budgets::Budget")
    sns.publish(TopicArn=topic, Message=f"Budget Name: {budget}\nAlert Type: ACTUAL")
    assert pilot.notices_to_jobs(timeout=480) == ["pilot-stop"]
    assert pilot.nodes == 2
    clock.forward(minutes=15 + RUN)
    assert pilot.nodes == 0
    clock.forward(minutes=RUN)
    assert pilot.nodes == 0

    account.deploy(cluster_template(budget_usd=600, budget_action="stop"))
    assert pilot.nodes == 2
    pilot.destroy()


def test_unused_nodes_stop_and_can_be_woken(account: Account, clock: MovableClock) -> None:
    pilot = deploy_pilot(account, clock, idle_minutes=60)
    assert outputs(account.cluster())["IdleMinutes"] == "60"
    clock.forward(minutes=1)
    clock.forward(minutes=46 + RUN)
    assert (pilot.nodes, pilot.subjects) == (2, ["trn-pilot is idle"])
    clock.forward(minutes=15 + RUN)
    assert (pilot.nodes, pilot.subjects[1:]) == (0, ["trn-pilot nodes stopped"])
    assert pilot.tags[STOPPED_TAG].startswith("idle ")
    woken = run_trn(account, "wake", "--yes", *OPTIONS)
    assert (woken.code, pilot.nodes) == (0, 2), woken.printed
    clock.forward(minutes=RUN)
    assert (pilot.nodes, STOPPED_TAG in pilot.tags) == (2, False)
    pilot.destroy()


def test_nodes_start_and_stop_with_the_capacity_block(start_account: Callable[[Settings], Account]) -> None:
    account = start_account(Settings(region=REGION_WITH_FUTURE_BLOCK))
    clock, ec2 = MovableClock(connection=account.aws.connection), account.aws.client("ec2")
    parameters = {"InstanceType": "trn1.32xlarge", "InstanceCount": 4, "CapacityDurationHours": 24}
    offers = ec2.describe_capacity_block_offerings(**parameters)["CapacityBlockOfferings"]
    offering = min(offers, key=lambda offer: offer["StartDate"])["CapacityBlockOfferingId"]
    bought = ec2.purchase_capacity_block(CapacityBlockOfferingId=offering, InstancePlatform="Linux/UNIX")
    block = bought["CapacityReservation"]
    begins, ends, name = block["StartDate"], block["EndDate"], block["CapacityReservationId"]
    neuron = [{"Name": "name", "Values": ["Deep Learning AMI Neuron*"]}]
    settings = {
        "region": account.aws.region,
        "ami": ec2.describe_images(Filters=neuron)["Images"][0]["ImageId"],
        "capacity": "capacity-block",
        "reservation_id": name,
        "availability_zone_id": block["AvailabilityZoneId"],
    }
    # The duration ends long before the block begins, if it counted from the deployment.
    pilot = deploy_pilot(account, clock, ends="8h", **settings)
    assert pilot.nodes == 0
    assert outputs(account.cluster())["Fleet"] == (
        f"no nodes, as planned: Capacity Block {name} begins at {utc_text(begins)}; the nodes launch then"
    )
    clock.forward_to(begins - timedelta(minutes=1))
    assert pilot.nodes == 0
    clock.forward_to(begins + timedelta(minutes=RUN))
    assert pilot.nodes == 2
    account.deploy(cluster_template(nodes=4, ends="2d", **settings))
    assert outputs(account.cluster())["Fleet"] == "4 of 4 nodes verified"
    clock.forward_to(ends - timedelta(minutes=46))
    assert pilot.nodes == 4
    clock.forward_to(ends - timedelta(minutes=45 - RUN))
    assert pilot.nodes == 0
    assert pilot.subjects == ["trn-pilot nodes started", "trn-pilot nodes stopped"]
    pilot.destroy()
