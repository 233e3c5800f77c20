"""The record of a stack: what it contains, what depends on it, and who may write it."""

from functools import cache
from pathlib import Path
from typing import Any, cast

import jsii
import pytest
from aws_cdk import Aspects, IAspect, NestedStack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from stacks.sagemaker_training_stack import SageMakerTrainingStack
from tests.constructs.synth import (
    EXISTING_NETWORK,
    REGION,
    Template,
    a_plan,
    as_list,
    cluster_template,
    new_app,
    new_stack,
    plan_template,
    statements,
    synthesize,
)
from tests.constructs.training import KMS_KEY, pcs_template, training_template
from tests.core.test_catalog_overlay import TOMORROW
from trainium_cdk import Capacity, NeuronFleet, SageMakerTraining, TrainiumCluster
from trainium_core import Plan
from trainium_core.plan.deployed_plan import deployed_plan
from trainium_wire.stack_record import StackRecord

PARAMETER = "AWS::SSM::Parameter"
BUCKET, GROUP = "AWS::S3::Bucket", "AWS::AutoScaling::AutoScalingGroup"
STACK_ID = "arn:aws:cloudformation:us-west-2:123456789012:stack/Stack/51af3dc0-da77-11e4-872e-1234567abcdb"
BILLED = (
    BUCKET,
    GROUP,
    "AWS::CloudWatch::Alarm",
    "AWS::EC2::EIP",
    "AWS::EC2::NatGateway",
    "AWS::EC2::VPCEndpoint",
    "AWS::EFS::FileSystem",
    "AWS::FSx::FileSystem",
    "AWS::ImageBuilder::Image",
    "AWS::PCS::Cluster",
    "AWS::PCS::ComputeNodeGroup",
    "Custom::TrnFleetReadiness",
)
LONG_LISTS: dict[str, Any] = {
    "job_inputs": tuple(f"s3://a-bucket-of-the-team/datasets/tokens-{number}" for number in range(8)),
    "job_secrets": tuple(
        f"arn:aws:secretsmanager:us-west-2:123456789012:secret:team/token-{number}-AbCdEf" for number in range(8)
    ),
    "job_checkpoints": "s3://a-bucket-of-the-team/checkpoints",
}


def resolved(value: Any) -> Any:
    """A property as deployed in the stack STACK_ID; `${NAME}` for the ID of a resource other than a VPC."""
    match value:
        case {"Ref": "AWS::StackId"}:
            return STACK_ID
        case {"Ref": str(name)}:
            return "vpc-0123456789abcdef0" if name.startswith("Vpc") else f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(resolved(part) for part in cast("list[Any]", parts))
        case {"Fn::Select": [int(index), parts]}:
            return resolved(parts)[index]
        case {"Fn::Split": [str(separator), text]}:
            return resolved(text).split(separator)
        case _:
            return value


def record_in(template: Template) -> StackRecord:
    properties = template.properties(PARAMETER)
    return StackRecord.from_parameter(resolved(properties["Name"]), resolved(properties["Value"]))


def names(template: Template, resource_type: str, name: str) -> set[str]:
    return {resolved(one["Properties"].get(name)) for one in template.resources(resource_type).values()}


@cache
def fleet_template(*, spot: bool = False, **parameters: Any) -> Template:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    NeuronFleet(
        stack,
        "Fleet",
        cluster_name="own",
        vpc=vpc,
        instance_type=ec2.InstanceType("trn1.32xlarge"),
        capacity=Capacity.spot() if spot else Capacity.on_demand(),
        **parameters,
    )
    return synthesize(stack)


EVERY_STACK = {
    "cluster": lambda: cluster_template(egress="nat-gateway", efs="new", fsx_lustre=1200, ends="5d", budget_usd=5),
    "closed cluster": cluster_template,
    "fleet": fleet_template,
    "pcs": pcs_template,
    "sagemaker": training_template,
    "sagemaker in a VPC": lambda: training_template(sagemaker_vpc=True, egress="nat-gateway"),
}


def test_record_of_a_plan_has_its_settings_and_the_names_of_the_resources() -> None:
    template = cluster_template(nodes=2, ends="5d", node_recovery=False, egress="nat-gateway", **LONG_LISTS)
    record = record_in(template)
    assert (record.cluster, record.stack, record.engine) == ("trn-pilot", "TrnClusterStack", "cluster")
    assert record.settings == {
        "instance_type": "trn1.32xlarge",
        "nodes": 2,
        "ends": "5d",
        "egress": "nat-gateway",
        "node_recovery": "off",
        **{key: list(value) if isinstance(value, tuple) else value for key, value in LONG_LISTS.items()},
    }
    assert {record.group} == names(template, GROUP, "AutoScalingGroupName")
    assert {record.bucket, record.cache_url.split("/")[2]} == names(template, BUCKET, "BucketName")
    assert record.cache_url.endswith("/neuron-compile-cache")
    assert record.sleep_function == resolved(template.resources()["TrainiumCdkSetAsleep"]["Properties"]["FunctionName"])
    assert record.instance_type is None


def test_names_have_the_prefix_of_names_that_cloudformation_chooses() -> None:
    name = "a-cluster-with-a-long-name-of-32"
    template = plan_template(a_plan(cluster_name=name))
    record = record_in(template)
    prefix = f"{name}-TrnClusterStack"[:24]
    assert record.bucket.startswith(f"{prefix.lower()}-records-")
    assert record.bucket.endswith("-51af3dc0")
    assert str(record.group).startswith(f"{prefix}-nodes-")
    assert str(record.sleep_function).startswith(f"{prefix}-TrainiumCdkSetAsleep-")
    assert max(len(record.bucket), len(str(record.sleep_function))) <= 63


@pytest.mark.parametrize("kind", EVERY_STACK)
def test_everything_billed_is_created_after_the_record_and_deleted_before_it(kind: str) -> None:
    template = EVERY_STACK[kind]()
    billed = {name for name, one in template.resources().items() if one["Type"] in BILLED}
    record = template.logical_id(PARAMETER)
    if kind == "fleet":  # the VPC is the app's
        billed = {name for name in billed if not name.startswith("Vpc")}
    assert billed
    assert {name for name in billed if record not in template.before(name)} == set()
    assert billed & template.before(record) == set()


@pytest.mark.parametrize("kind", EVERY_STACK)
def test_no_role_of_a_stack_may_change_parameters(kind: str) -> None:
    actions = {action for one in statements(EVERY_STACK[kind]()) for action in as_list(one["Action"])}
    assert actions
    changing = ("ssm:Put", "ssm:Delete", "ssm:Label", "ssm:AddTags", "ssm:RemoveTags")
    assert [name for name in actions if "*" in name or name.startswith(changing)] == []


def test_record_of_a_fleet_describes_what_a_plan_would() -> None:
    record = record_in(fleet_template(nodes=2, spot=True, max_replacements=1))
    assert (record.cluster, record.stack, record.engine) == ("own", "Stack", "cluster")
    plan = deployed_plan(record, region=REGION, prices={})
    assert (plan.instance_type, plan.nodes, plan.capacity, plan.node.replacements) == ("trn1.32xlarge", 2, "spot", 1)
    assert plan.network.effective_egress == "existing"


def test_record_of_slurm_has_its_settings() -> None:
    record = record_in(pcs_template(pcs_queues=("fast:9", "slow")))
    assert record.engine == "pcs"
    assert record.settings["pcs_queues"] == ["fast:9", "slow"]
    assert record.group is None


def test_record_of_training_has_the_role_the_network_and_the_key() -> None:
    training = a_plan(sagemaker_vpc=True, sagemaker_kms_key=KMS_KEY, tags={"team": "ml"}, stacks=("sagemaker",))
    template = synthesize(SageMakerTrainingStack(new_app(), "Training", plan=training))
    record = record_in(template)
    assert (record.engine, record.kms_key_arn) == ("sagemaker", KMS_KEY)
    assert str(record.role_arn)[2:-5] in template.resources("AWS::IAM::Role")
    assert len(record.subnet_ids) == len(record.security_group_ids) == 1
    assert record.settings["tags"] == {"team": "ml"}
    assert "dkr.ecr.us-west-2" in record.settings["sagemaker_image"]


def test_instance_type_of_the_users_catalog_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "types.toml").write_text(TOMORROW)
    own = Plan.from_settings(
        {"instance_type": "trn9.96xlarge", "region": "eu-north-1", "catalog": "types.toml"}, tmp_path
    )
    plan = deployed_plan(record_in(plan_template(own)), region="eu-north-1", prices={})
    assert plan.type == own.type


@jsii.implements(IAspect)
class CompanyNames:
    def visit(self, node: IConstruct) -> None:
        if isinstance(node, s3.CfnBucket):
            node.bucket_name = f"corp-{node.node.addr[-8:]}"


def test_record_follows_an_aspect_that_renames_buckets() -> None:
    stack = new_stack()
    TrainiumCluster(stack, "Cluster", plan=a_plan())
    aspect: Any = CompanyNames()
    Aspects.of(stack).add(aspect)
    template = synthesize(stack)
    record = record_in(template)
    assert {record.bucket, record.cache_url.split("/")[2]} == names(template, BUCKET, "BucketName")
    assert record.bucket.startswith("corp-")


def test_fleet_of_a_nested_stack_has_a_record_with_the_name_of_that_stack() -> None:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    nested = NestedStack(stack, "Nested")
    NeuronFleet(nested, "Fleet", cluster_name="own", instance_type=ec2.InstanceType("trn1.32xlarge"), vpc=vpc)
    (file,) = synthesize(stack).file.parent.glob("*.nested.template.json")
    assert record_in(Template(file)).stack == "${AWS::StackName}"


def test_cluster_and_training_of_one_stack_have_a_record_each() -> None:
    stack = new_stack()
    cluster = TrainiumCluster(stack, "Cluster", plan=a_plan(cluster_name="one"))
    SageMakerTraining(stack, "Training", cluster_name="one", cache=cluster.cache)
    values = [one["Properties"] for one in synthesize(stack).resources(PARAMETER).values()]
    found = [StackRecord.from_parameter(resolved(one["Name"]), resolved(one["Value"])) for one in values]
    assert sorted(record.engine for record in found) == ["cluster", "sagemaker"]
    assert len({(record.cluster, record.stack, record.cache_url) for record in found}) == 1


def test_record_that_is_too_large_is_refused_with_the_longest_settings() -> None:
    secrets = tuple(f"{LONG_LISTS['job_secrets'][0][:-7]}{number:060}-AbCdEf" for number in range(30))
    with pytest.raises(RuntimeError, match=r"4,096 bytes.*fix: shorten the longest settings: job_secrets \("):
        plan_template(a_plan(job_secrets=secrets, **EXISTING_NETWORK))
