"""Apps of platform teams, built with the installed wheel: deployed, operated by `trn`, changed and destroyed.

Roles have the permissions that the constructs give them, and no others.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.constructs.synth import REGION, ROOT, Json, Template
from tests.deploy import assembly
from tests.deploy.account import BOOTSTRAP_PARAMETERS, Account, bootstrap_template, differences
from tests.deploy.command import run_trn
from tests.deploy.conftest import ON_DEMAND_TRN, QUOTA_VCPUS
from tests.deploy.permitted import with_role
from tests.wheel.environment import (
    DOWNSTREAM_APPS,
    WheelEnvironment,
    built_wheel,
    install_wheel,
    synthesize_apps,
    unpack_wheel,
)
from tools.demo.inventory import Inventory
from trainium_local.environment import ACCOUNT_ID
from trainium_local.server import Settings

GENERATED = "cdk_init"
README = "readme"
FEW, MANY = 1, 2
RUNNER = "pipeline-runner"
FUNCTION_JOB = 'name = "echo"\ncommand = "echo done"\n'

CLUSTERS: Mapping[str, list[str]] = {
    "cache_and_quota": [],
    "cdk_init": ["initstack-fleet-6c6bfda3"],
    "company_rules": ["corp"],
    "imported": ["imported"],
    "job_function": ["jobs"],
    "ordinary_resources": ["beside-a-service"],
    "parameters": ["parameters"],
    "pipeline": ["train"],
    "two_teams": ["speech", "vision"],
    "two_zones": ["train-usw2-az1", "train-usw2-az4"],
    "web_app": ["web-train"],
}
"""Names of the clusters in each app."""

CHANGED: Mapping[str, Mapping[str, int]] = {
    "company_rules": {"corp": MANY},
    "ordinary_resources": {"beside-a-service": MANY},
    "parameters": {"parameters": MANY},
    "two_teams": {"speech": 1},
    "two_zones": {"train-usw2-az1": MANY, "train-usw2-az4": MANY},
    "web_app": {"web-train": MANY},
}
"""The number of nodes of each cluster of the apps that change, after the change."""


@pytest.fixture(scope="module")
def account(start_account: Callable[..., Account]) -> Account:
    return start_account(Settings(iam="enforced", quotas={ON_DEMAND_TRN: QUOTA_VCPUS}))


@pytest.fixture(scope="module")
def platform(account: Account) -> Mapping[str, str]:
    """The existing resources that the app `imported` uses."""
    parameters = {**BOOTSTRAP_PARAMETERS, "Qualifier": "platform"}
    stack_parameters = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    toolkit: dict[str, Any] = {"TemplateBody": bootstrap_template(), "Parameters": stack_parameters}
    assert assembly.create(account.aws, "PlatformToolkit", **toolkit) == "CREATE_COMPLETE"
    boundary = [{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}]
    document = json.dumps({"Version": "2012-10-17", "Statement": boundary})
    account.aws.client("iam").create_policy(PolicyName="platform-boundary", PolicyDocument=document)
    where = {"LocationConstraint": REGION}
    account.aws.client("s3").create_bucket(Bucket="platform-cache", CreateBucketConfiguration=where)
    ec2 = account.aws.client("ec2")
    (subnet,) = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [f"{REGION}d"]}])["Subnets"]
    of_vpc = [{"Name": "vpc-id", "Values": [subnet["VpcId"]]}]
    (routes, *_) = ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
    (other,) = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [f"{REGION}a"]}])["Subnets"]
    parameters = {"vpc": subnet["VpcId"], "subnet-a": other["SubnetId"], "subnet-d": subnet["SubnetId"]}
    for name, value in parameters.items():
        account.aws.client("ssm").put_parameter(Name=f"/company/{name}", Type="String", Value=value)
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT_ID}:root"}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    account.aws.client("iam").create_role(RoleName=RUNNER, AssumeRolePolicyDocument=document)
    return {
        "vpc": subnet["VpcId"],
        "subnet": subnet["SubnetId"],
        "routes": routes["RouteTableId"],
        "bucket": "platform-cache",
        "boundary": "platform-boundary",
    }


def handler_in_the_docs() -> str:
    _, section = (ROOT / "docs/guides/own-app.md").read_text().split("\n## Start jobs from a function\n")
    code = re.search(r"```python\n(import .*?)```", section, re.DOTALL)
    assert code is not None
    return code[1]


def readme_sample() -> str:
    _, section = (ROOT / "README.md").read_text().split("\n## In your CDK app\n")
    (code,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    return code


@pytest.fixture(scope="module")
def environment() -> WheelEnvironment:
    return install_wheel(also=["cdk-nag"])


@pytest.fixture(scope="module")
def generated(account: Account, environment: WheelEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the app of `cdk init app --language python` in `init`, and the app's cloud assembly beside it.

    The app's stack contains a fleet; its cdk.json is unchanged.
    """
    folder = tmp_path_factory.mktemp("generated")
    app = folder / "init"
    app.mkdir()
    run = account.cdk("init", "app", "--language", "python", "--generate-only", folder=app)
    assert run.code == 0, run.printed
    stack = app / "init/init_stack.py"
    assert "# The code that defines your stack goes here" in stack.read_text()
    stack.write_text((DOWNSTREAM_APPS / f"{GENERATED}.py").read_text())
    # With `python3 app.py`, as in the app's own cdk.json.
    options = ["--context", f"nodes={FEW}", "--output", str(folder / f"{GENERATED}-{FEW}")]
    run = account.cdk("synth", "--quiet", *options, folder=app, tools=[environment.python.parent])
    assert run.code == 0, run.printed
    return folder


@pytest.fixture(scope="module")
def assemblies(
    platform: Mapping[str, str],
    environment: WheelEnvironment,
    generated: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, Path]:
    """The cloud assemblies of every app, of those in CHANGED also with many nodes, and of the README's sample."""
    asked: dict[str, tuple[str, Json]] = {README: (readme_sample(), {})}
    for app, nodes in [*((app, FEW) for app in CLUSTERS.keys() - {GENERATED}), *((app, MANY) for app in CHANGED)]:
        code = (DOWNSTREAM_APPS / f"{app}.py").read_text()
        asked[f"{app}-{nodes}"] = (code, {"nodes": nodes, "platform": platform})
    folder = tmp_path_factory.mktemp("apps")
    unpack_wheel(built_wheel(), folder / "start")
    (folder / "start/handler.py").write_text(handler_in_the_docs())
    (folder / "start/job.toml").write_text(FUNCTION_JOB)
    synthesize_apps(environment, folder, asked)
    return {found.parent.name: found.parent for place in (folder, generated) for found in place.glob("*/manifest.json")}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack of an app: its cloud assembly, its ID there, and its name."""

    folder: Path
    id: str
    name: str


def stacks(folder: Path) -> Iterator[Stack]:
    """The stacks of a cloud assembly and of its Stages, each after its dependencies."""
    artifacts: Mapping[str, Any] = json.loads((folder / "manifest.json").read_text())["artifacts"]
    for one in artifacts.values():
        if one["type"] == "cdk:cloud-assembly":
            yield from stacks(folder / one["properties"]["directoryName"])
    ahead = [key for key, one in artifacts.items() if one["type"] == "aws:cloudformation:stack"]
    while ahead:
        key = next(key for key in ahead if not set(artifacts[key].get("dependencies", [])) & set(ahead))
        ahead.remove(key)
        yield Stack(folder=folder, id=key, name=artifacts[key]["properties"].get("stackName", key))


def deploy(account: Account, folder: Path) -> list[Stack]:
    """Deploy the stacks of an app, except its pipeline: AWS CodePipeline would deploy the others."""
    found = [stack for stack in stacks(folder) if stack.id != "Pipeline"]
    for stack in found:
        status = assembly.deploy(account.aws, stack.folder, stack.id)
        assert status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), status
    return found


def trn(account: Account, *arguments: str, code: int = 0) -> str:
    ran = run_trn(account, *arguments, "--region", REGION)
    assert ran.code == code, f"trn {' '.join(arguments)}: {ran.printed}"
    return ran.printed


def sizes(account: Account) -> Mapping[str, int]:
    """The number of nodes of each cluster that `trn` lists."""
    return {one["name"]: len(one["nodes"]) for one in json.loads(trn(account, "list", "--json"))["clusters"]}


def check_sleep_and_wake(account: Account, cluster: str) -> None:
    assert "ready: 1 of 1 nodes verified" in trn(account, "nodes", "--cluster", cluster)
    trn(account, "sleep", "--cluster", cluster, "--yes", "--grace", "0")
    assert sizes(account)[cluster] == 0
    assert "is awake: 1 of 1 nodes verified" in trn(account, "wake", "--cluster", cluster, "--yes")


def check_function_starts_a_job(account: Account) -> None:
    (name,) = [name for name in account.cluster("Jobs").ids("AWS::Lambda::Function") if name.startswith("Jobs-Start")]
    answer = json.loads(account.aws.client("lambda").invoke(FunctionName=name)["Payload"].read())
    assert "id" in answer, answer
    assert "done" in trn(account, "logs", answer["id"], "--follow", "--cluster", "jobs")


def check_role_of_the_pipeline_runs_a_job(account: Account) -> None:
    (account.folder / "job.toml").write_text(FUNCTION_JOB)
    assert "succeeded" in trn(with_role(account, RUNNER), "run", "job.toml", "--cluster", "train", "--yes")


def check_launch_template_of_the_company(account: Account) -> None:
    """The aspect turns monitoring on together with another node generation."""
    instances = account.cluster("Corp").instances
    tags = [{tag["Key"]: tag["Value"] for tag in instance["Tags"]} for instance in instances]
    version = tags[0]["aws:ec2launchtemplate:version"]
    template = tags[0]["aws:ec2launchtemplate:id"]
    found = account.aws.client("ec2").describe_launch_template_versions(LaunchTemplateId=template, Versions=[version])
    monitoring = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["Monitoring"]["Enabled"]
    assert (monitoring, {tag["cost-center"] for tag in tags}) == (len(instances) > 1, {"42"})


OPERATED: Mapping[str, Callable[[Account], None]] = {
    "company_rules": check_launch_template_of_the_company,
    "imported": lambda account: check_sleep_and_wake(account, "imported"),
    "job_function": check_function_starts_a_job,
    "pipeline": check_role_of_the_pipeline_runs_a_job,
}
"""What is done with deployed apps."""


def left_behind(account: Account, before: Inventory) -> list[str]:
    """The added and removed resources, except the assets in the platform's bootstrap bucket."""
    return [one for one in differences(before, account.inventory()) if "cdk-platform-assets-" not in one]


def test_tests_cover_every_app() -> None:
    assert {file.stem for file in DOWNSTREAM_APPS.glob("*.py")} == CLUSTERS.keys()


@pytest.mark.parametrize("app", sorted(CLUSTERS.keys() - {"ordinary_resources", "web_app"}))
def test_app_is_deployed_and_destroyed(account: Account, assemblies: Mapping[str, Path], app: str) -> None:
    before = account.inventory()
    made = deploy(account, assemblies[f"{app}-{FEW}"])
    assert sizes(account) == dict.fromkeys(CLUSTERS[app], FEW)
    operate = OPERATED.get(app, lambda _: None)
    operate(account)
    if app in CHANGED:
        deploy(account, assemblies[f"{app}-{MANY}"])
        assert sizes(account) == CHANGED[app]
        operate(account)
    for cluster in sizes(account):
        trn(account, "destroy", "--cluster", cluster, "--whole-stacks", "--yes", "--grace", "0")
        trn(account, "audit", "--cluster", cluster)
    left = {one["StackName"] for one in account.aws.client("cloudformation").describe_stacks()["Stacks"]}
    for stack in reversed([stack for stack in made if stack.name in left]):
        account.destroy(stack.name)
    assert left_behind(account, before) == []


def test_fleet_next_to_a_web_app_is_operated_and_destroyed(account: Account, assemblies: Mapping[str, Path]) -> None:
    before = account.inventory()
    few, many = (Template(assemblies[f"web_app-{nodes}"] / "Web.template.json") for nodes in (FEW, MANY))
    account.cdk_deploy(few, "Web")
    check_sleep_and_wake(account, "web-train")
    account.cdk_deploy(many, "Web")
    cluster = account.cluster("Web")
    (found,) = json.loads(trn(account, "list", "--json"))["clusters"]
    assert (found["state"], len(found["nodes"]), [one["name"] for one in found["stacks"]]) == ("running", MANY, ["Web"])
    assert {node["VpcId"] for node in cluster.instances} == set(cluster.ids("AWS::EC2::VPC"))
    (group,) = cluster.ids("AWS::AutoScaling::AutoScalingGroup")
    audited = {one["name"] for one in json.loads(trn(account, "audit", "--json", code=1))["resources"]}
    assert group in audited
    assert not set(cluster.ids("AWS::EC2::VPC")) & audited

    destroyed = trn(account, "destroy", "--cluster", found["name"], "--yes", "--grace", "0", code=1)
    assert "Web stays: it also has" in destroyed
    left = account.cluster("Web")
    assert (left.instances, len(left.resources)) == ([], len(cluster.resources))
    account.cdk_destroy(many, "Web")
    s3 = account.aws.client("s3")
    (cache,) = {one["Name"] for one in s3.list_buckets()["Buckets"]} & set(cluster.ids("AWS::S3::Bucket"))
    s3.delete_bucket(Bucket=cache)
    assert left_behind(account, before) == []


def test_fleet_beside_ordinary_resources_is_deployed_changed_and_destroyed(
    account: Account, assemblies: Mapping[str, Path]
) -> None:
    before = account.inventory()
    few, many = (Template(assemblies[f"ordinary_resources-{nodes}"] / "Service.template.json") for nodes in (FEW, MANY))
    account.cdk_deploy(few, "Service")
    deployed = account.cluster("Service")
    (key,), (queue,) = deployed.ids("AWS::KMS::Key"), deployed.ids("AWS::SQS::Queue")
    (listener,) = deployed.ids("AWS::ElasticLoadBalancingV2::Listener")
    kms, sqs, elbv2, autoscaling = map(account.aws.client, ("kms", "sqs", "elbv2", "autoscaling"))
    assert not kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"]
    (hook_and_action,) = [
        (hook["AutoScalingGroupName"], hook["LifecycleTransition"], action["Recurrence"])
        for action in autoscaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
        for hook in autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=action["AutoScalingGroupName"])[
            "LifecycleHooks"
        ]
    ]
    assert hook_and_action[1:] == ("autoscaling:EC2_INSTANCE_TERMINATING", "0 6 * * *")

    account.cdk_deploy(many, "Service")
    assert kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"]
    visibility = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout"])["Attributes"]
    assert visibility == {"VisibilityTimeout": "60"}
    (group,) = account.cluster("Service").ids("AWS::ElasticLoadBalancingV2::TargetGroup")
    (shown,) = elbv2.describe_listeners(ListenerArns=[listener])["Listeners"]
    assert [action["TargetGroupArn"] for action in shown["DefaultActions"]] == [group]
    assert sizes(account)["beside-a-service"] == MANY

    account.cdk_deploy(few, "Service")  # the targets, the rotation and the attribute of the queue go again
    assert not kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"]
    account.cdk_destroy(few, "Service")
    assert left_behind(account, before) == []


def test_sample_of_the_readme_is_deployed_as_printed_and_destroyed(
    account: Account, assemblies: Mapping[str, Path]
) -> None:
    before = account.inventory()
    deploy(account, assemblies[README])
    deployed = account.cluster("Training")
    assert len(deployed.instances) == 2
    trn(account, "destroy", "--cluster", "training", "--yes", "--grace", "0")
    s3 = account.aws.client("s3")
    (cache,) = {one["Name"] for one in s3.list_buckets()["Buckets"]} & set(deployed.ids("AWS::S3::Bucket"))
    printed = trn(account, "audit", "--cluster", "training", "--json")
    audit = json.loads(printed[printed.index("{") :])  # A sentence on standard error precedes it.
    assert {one["name"]: one["group"] for one in audit["resources"] if one["group"] != "shared"} == {cache: "kept"}
    s3.delete_bucket(Bucket=cache)
    assert left_behind(account, before) == []


def test_generated_app_with_feature_flags_has_a_fleet_in_any_environment(
    assemblies: Mapping[str, Path], generated: Path
) -> None:
    written: Json = json.loads((generated / "init/cdk.json").read_text())
    assert written["app"] == "python3 app.py"
    assert len(written["context"]) > 50
    template = Template(assemblies[f"{GENERATED}-{FEW}"] / "InitStack.template.json")
    assert template.resources("AWS::AutoScaling::AutoScalingGroup")
    (stack,) = stacks(assemblies[f"{GENERATED}-{FEW}"])
    manifest: Json = json.loads((assemblies[f"{GENERATED}-{FEW}"] / "manifest.json").read_text())
    assert manifest["artifacts"][stack.id]["environment"] == "aws://unknown-account/unknown-region"


def test_boundary_and_tags_of_an_app_reach_created_resources(assemblies: Mapping[str, Path]) -> None:
    template = Template(assemblies[f"imported-{FEW}"] / "Imported.template.json")
    roles = [one["Properties"] for one in template.resources("AWS::IAM::Role").values()]
    specifications = template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["TagSpecifications"]
    tag = {"Key": "cost-center", "Value": "42"}
    assert roles
    assert all("platform-boundary" in json.dumps(role["PermissionsBoundary"]) for role in roles)
    assert all(tag in one["Tags"] for one in [*roles, *specifications])
