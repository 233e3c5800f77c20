"""SageMakerTrainingStack on the embedded AWS: deployed, and destroyed with the files of its jobs."""

import json

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


def test_state_machine_uses_the_role_and_network_of_the_outputs(account: Account, deployed: dict[str, str]) -> None:
    machine = account.aws.client("stepfunctions").describe_state_machine(stateMachineArn=deployed["StateMachineArn"])
    train = json.loads(machine["definition"])["States"]["Train"]
    assert train["Parameters"]["RoleArn"] == deployed["RoleArn"]
    assert train["Parameters"]["VpcConfig"] == {
        "Subnets": [deployed["SubnetIds"]],
        "SecurityGroupIds": [deployed["SecurityGroupIds"]],
    }


def test_rule_of_failed_jobs_targets_the_topic(account: Account, deployed: dict[str, str]) -> None:
    events = account.aws.client("events")
    (rule,) = account.cluster(SAGEMAKER.construct_id).ids("AWS::Events::Rule")
    assert [target["Arn"] for target in events.list_targets_by_rule(Rule=rule)["Targets"]] == [deployed["TopicArn"]]


def test_destroy_restores_the_account(before: Inventory, destroyed: Inventory) -> None:
    assert differences(before, destroyed) == []


def test_no_state_machine_alarm_or_subscription_is_left(account: Account, destroyed: Inventory) -> None:  # noqa: ARG001
    client = account.aws.client
    assert client("stepfunctions").list_state_machines()["stateMachines"] == []
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
