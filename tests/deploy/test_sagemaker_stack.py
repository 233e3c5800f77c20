"""SageMakerTrainingStack on the embedded AWS: deployed, and destroyed with the files of its jobs."""

import pytest

from tests.constructs.synth import Template
from tests.constructs.training import training_template
from tests.deploy.account import Account, differences, outputs
from tools.demo.inventory import Inventory
from trainium_core.engines.sagemaker.engine import SAGEMAKER


@pytest.fixture(scope="module")
def template() -> Template:
    return training_template(sagemaker_vpc=True, sagemaker_report_email="ml@example.com")


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def deployed(account: Account, before: Inventory, template: Template) -> dict[str, str]:  # noqa: ARG001
    """The outputs of the stack, with a file in each folder of its buckets."""
    account.cdk_deploy(template, SAGEMAKER.construct_id)
    found = dict(outputs(account.cluster(SAGEMAKER.construct_id)))
    for name in ("SourceUrl", "CheckpointUrl", "OutputUrl", "CacheUrl"):
        bucket, _, folder = found[name].removeprefix("s3://").partition("/")
        account.aws.client("s3").put_object(Bucket=bucket, Key=f"{folder}/job/file", Body=b"content")
    return found


@pytest.fixture(scope="module")
def destroyed(account: Account, deployed: dict[str, str], template: Template) -> Inventory:  # noqa: ARG001
    account.cdk_destroy(template, SAGEMAKER.construct_id)
    return account.inventory()


def test_every_resource_of_the_template_exists(account: Account, deployed: dict[str, str], template: Template) -> None:
    assert deployed
    names = [one["LogicalResourceId"] for one in account.cluster(SAGEMAKER.construct_id).resources]
    assert sorted(names) == sorted(template.resources())


def test_queue_has_the_limit_of_the_plan_and_a_policy(account: Account, deployed: dict[str, str]) -> None:
    batch = account.aws.client("batch")
    (queue,) = batch.describe_job_queues(jobQueues=[deployed["JobQueueArn"]])["jobQueues"]
    (order,) = queue["serviceEnvironmentOrder"]
    named = [order["serviceEnvironment"]]
    (environment,) = batch.describe_service_environments(serviceEnvironments=named)["serviceEnvironments"]
    assert environment["capacityLimits"] == [{"capacityUnit": "NUM_INSTANCES", "maxCapacity": 2}]
    assert queue["tags"]["trn:cluster"] == "trn-pilot"
    policies = batch.describe_scheduling_policies(arns=[queue["schedulingPolicyArn"]])["schedulingPolicies"]
    assert policies[0]["fairsharePolicy"]["shareDecaySeconds"] == 24 * 3600


def test_update_changes_the_limit_of_the_same_queue(account: Account, deployed: dict[str, str]) -> None:
    settings = {"sagemaker_vpc": True, "sagemaker_report_email": "ml@example.com"}
    account.cdk_deploy(training_template(**settings, sagemaker_max_instances=8), SAGEMAKER.construct_id)
    batch = account.aws.client("batch")
    (environment,) = batch.describe_service_environments()["serviceEnvironments"]
    assert environment["capacityLimits"][0]["maxCapacity"] == 8
    assert outputs(account.cluster(SAGEMAKER.construct_id))["JobQueueArn"] == deployed["JobQueueArn"]


def test_rules_of_ended_jobs_target_the_topic(account: Account, deployed: dict[str, str]) -> None:
    events = account.aws.client("events")
    rules = account.cluster(SAGEMAKER.construct_id).ids("AWS::Events::Rule")
    assert len(rules) == 2
    for rule in rules:
        assert [one["Arn"] for one in events.list_targets_by_rule(Rule=rule)["Targets"]] == [deployed["TopicArn"]]


def test_destroy_restores_the_account(before: Inventory, destroyed: Inventory) -> None:
    assert differences(before, destroyed) == []


def test_no_queue_alarm_or_subscription_is_left(account: Account, destroyed: Inventory) -> None:  # noqa: ARG001
    client = account.aws.client
    assert client("batch").describe_job_queues()["jobQueues"] == []
    assert client("batch").describe_service_environments()["serviceEnvironments"] == []
    assert client("batch").list_scheduling_policies()["schedulingPolicies"] == []
    assert client("cloudwatch").describe_alarms()["MetricAlarms"] == []
    assert client("sns").list_subscriptions()["Subscriptions"] == []


def test_only_retained_models_are_left(account: Account, destroyed: Inventory) -> None:
    kept = training_template(sagemaker_output_at_destroy="retain")
    account.deploy(kept, SAGEMAKER.construct_id)
    bucket = outputs(account.cluster(SAGEMAKER.construct_id))["OutputUrl"].split("/")[2]
    s3 = account.aws.client("s3")
    s3.put_object(Bucket=bucket, Key="output/model.tar.gz", Body=b"trained")
    account.destroy(SAGEMAKER.construct_id)
    tagged = "+ anything tagged trn:cluster: arn:aws:s3:::"
    left = [f"+ S3 buckets: {bucket}", f"+ S3 objects: {bucket}/output/model.tar.gz", f"{tagged}{bucket}"]
    found = differences(destroyed, account.inventory())
    s3.delete_object(Bucket=bucket, Key="output/model.tar.gz")
    s3.delete_bucket(Bucket=bucket)  # Other tests use the same account.
    assert found == left
