"""Node groups for EKS, and roles of pods: what EKS and EC2 accept."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from aws_cdk import App, Environment, Stack, Tags, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2 as eks_v2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from cdk_nag import AwsSolutionsChecks
from cfnlint.helpers import load_resource
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.constructs.plans import OFFERED, RESERVATION
from tests.constructs.synth import (
    REGION,
    Json,
    Template,
    as_text,
    granted,
    new_app,
    new_stack,
    statements,
    synthesize,
)
from tests.stacks.linting import CDK_WRITES_NEEDLESS_DEPENDENCIES, lint
from tests.stacks.test_api_models import filled_in, model_errors
from trainium_cdk import Capacity, CompileCache, NeuronNodeGroup, PodRole
from trainium_core import builtin_catalog
from trainium_core.plan.settings.network import CARD_INTERFACE_TYPES
from trainium_core.plan.values import CapacityKind

GROUP, TEMPLATE = "AWS::EKS::Nodegroup", "AWS::EC2::LaunchTemplate"
CLUSTER_GROUP = "sg-0123456789abcdef0"
TRN1 = ec2.InstanceType("trn1.32xlarge")
PROHIBITED = {
    "IamInstanceProfile",
    "ImageId",
    "InstanceInitiatedShutdownBehavior",
    "KeyName",
    "HibernationOptions",
    "SecurityGroupIds",
    "UserData",
}
"""Properties of a launch template that EKS refuses or that would replace its image and user data (Amazon EKS User
Guide, launch templates)."""


def existing_cluster(scope: Stack, construct_id: str = "Existing", **attributes: Any) -> Any:
    """A cluster of another app, imported with the attributes that node groups need."""
    vpc = ec2.Vpc.from_vpc_attributes(
        scope,
        f"{construct_id}Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )
    known = {"cluster_name": "prod", "vpc": vpc, "cluster_security_group_id": CLUSTER_GROUP}
    return eks.Cluster.from_cluster_attributes(scope, construct_id, **{**known, **attributes})


def group_template(**props: Any) -> Template:
    """The template of a node group for an existing cluster."""
    region = props.pop("region", REGION)
    stack = Stack(new_app(), "Stack", env=Environment(region=region))
    NeuronNodeGroup(stack, "Group", **{"cluster": existing_cluster(stack), "instance_type": TRN1, **props})
    return synthesize(stack)


@cache
def two_nodes() -> Template:
    return group_template(nodes=2, cluster_name="eks-trn1", labels={"example.com/team": "ml"})


def capacity_of(kind: CapacityKind) -> Capacity:
    return Capacity(kind, RESERVATION if kind in ("capacity-block", "reservation") else None)


TRAINIUM = [offer for offer in OFFERED if not builtin_catalog()[offer[0]].is_gpu]


@given(
    offer=st.sampled_from(TRAINIUM),
    nodes=st.integers(1, 64),
    desired=st.none() | st.integers(0, 64),
    interface=st.sampled_from(CARD_INTERFACE_TYPES),
)
@settings(max_examples=15)
def test_node_group_of_any_type_and_capacity_is_valid(
    offer: tuple[str, str, CapacityKind], nodes: int, desired: int | None, interface: str
) -> None:
    name, region, kind = offer
    entry = builtin_catalog()[name]
    desired = None if desired is None else min(desired, nodes)
    template = group_template(
        region=region,
        instance_type=ec2.InstanceType(name),
        nodes=nodes,
        desired_nodes=desired,
        capacity=capacity_of(kind),
        **({"secondary_interface_type": interface} if entry.efa_interfaces > 1 else {}),
    )
    group = template.properties(GROUP)
    default = 0 if kind == "capacity-block" else nodes
    assert group["ScalingConfig"] == {
        "MinSize": 0,
        "MaxSize": nodes,
        "DesiredSize": default if desired is None else desired,
    }
    expected = {"on-demand": "ON_DEMAND", "reservation": "ON_DEMAND", "spot": "SPOT"}
    assert group["CapacityType"] == expected.get(kind, "CAPACITY_BLOCK")
    assert len(group["Subnets"]) == 1
    assert not {"InstanceTypes", "DiskSize", "RemoteAccess", "Version"} & group.keys()
    data = template.properties(TEMPLATE)["LaunchTemplateData"]
    assert not PROHIBITED & data.keys()
    interfaces = data["NetworkInterfaces"]
    assert len(interfaces) == max(entry.efa_interfaces, 1)
    assert all("SubnetId" not in one and one["Groups"][0] == CLUSTER_GROUP for one in interfaces)
    assert {one["InterfaceType"] for one in interfaces[1:]} <= {interface}
    market = data.get("InstanceMarketOptions")
    assert market == ({"MarketType": "capacity-block"} if kind == "capacity-block" else None)
    target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    assert target.get("CapacityReservationId") == capacity_of(kind).reservation_id
    assert bool(template.resources("AWS::EC2::PlacementGroup")) == (
        bool(entry.efa_interfaces) and kind in ("on-demand", "spot")
    )
    assert requests_errors(template) == []


def requests_errors(template: Template) -> list[str]:
    """The errors of the requests that CloudFormation makes, by botocore's models."""
    found = list[str]()
    for service, operation, properties, more in (
        ("ec2", "CreateLaunchTemplate", template.properties(TEMPLATE), {"LaunchTemplateName": "node"}),
        ("eks", "CreateNodegroup", template.properties(GROUP), {"NodegroupName": "group"}),
    ):
        model = boto3.client(service, region_name=REGION).meta.service_model.operation_model(operation)
        request = {**as_request(properties), **more}
        if service == "eks":
            request = lower_case(request, verbatim=("Labels", "Tags"))
        found += model_errors(model, request)
    return found


def as_request(properties: Json) -> Json:
    values = {"Id": "lt-0123456789abcdef0", "Version": "1", "NodeRole": "arn:aws:iam::123456789012:role/node"}
    replaced = {**properties, **{name: value for name, value in values.items() if name in properties}}
    if "LaunchTemplate" in properties:
        replaced["LaunchTemplate"] = {"Id": values["Id"], "Version": values["Version"]}
    return filled_in(replaced)


def lower_case(value: Any, *, verbatim: tuple[str, ...]) -> Any:
    """Properties under the names of the EKS API."""
    if isinstance(value, list):
        return [lower_case(item, verbatim=verbatim) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key[0].lower() + key[1:]: part if key in verbatim else lower_case(part, verbatim=verbatim)
        for key, part in value.items()
    }


def test_nodes_get_image_taint_labels_repair_and_minimal_updates() -> None:
    group = two_nodes().properties(GROUP)
    assert group["AmiType"] == "AL2023_x86_64_NEURON"
    assert group["Taints"] == [{"Key": "aws.amazon.com/neuron", "Value": "true", "Effect": "NO_SCHEDULE"}]
    assert group["Labels"] == {"trn/cluster": "eks-trn1", "example.com/team": "ml"}
    assert group["NodeRepairConfig"] == {"Enabled": True}
    assert group["UpdateConfig"] == {"UpdateStrategy": "MINIMAL", "MaxUnavailable": 1}
    assert group["Tags"] == {"trn:cluster": "eks-trn1"}


def test_secondary_interfaces_are_efa_only_by_default() -> None:
    interfaces = two_nodes().properties(TEMPLATE)["LaunchTemplateData"]["NetworkInterfaces"]
    assert [one["InterfaceType"] for one in interfaces] == ["efa", *["efa-only"] * 7]


def test_new_version_of_the_launch_template_updates_the_group() -> None:
    template = two_nodes()
    launch_template = template.logical_id(TEMPLATE)
    assert template.properties(GROUP)["LaunchTemplate"] == {
        "Id": {"Ref": launch_template},
        "Version": {"Fn::GetAtt": [launch_template, "LatestVersionNumber"]},
    }


def test_group_is_created_after_what_nodes_need() -> None:
    template = two_nodes()
    before = {template.resources()[name]["Type"] for name in template.before(template.logical_id(GROUP))}
    assert before >= {
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::IAM::Role",
        "Custom::TrnQuotaCheck",
    }


def test_quota_check_counts_the_maximum_and_can_be_omitted() -> None:
    assert two_nodes().properties("Custom::TrnQuotaCheck")["Nodes"] == 2
    assert not group_template(quota_check=False).resources("Custom::TrnQuotaCheck")


def test_cluster_of_the_app_gives_its_name_vpc_and_security_group() -> None:
    app = new_app()
    env = Environment(region=REGION)
    shared = Stack(app, "Shared", env=env)
    vpc = ec2.Vpc(shared, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
    cluster = eks_v2.Cluster(shared, "Cluster", vpc=vpc, version=eks_v2.KubernetesVersion.V1_35)
    stack = Stack(app, "Nodes", env=env)
    NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    template = synthesize(stack)
    assert "Shared" in json.dumps(template.properties(GROUP)["ClusterName"])
    (own,) = template.resources("AWS::EC2::SecurityGroup")
    interfaces = template.properties(TEMPLATE)["LaunchTemplateData"]["NetworkInterfaces"]
    imported, second = interfaces[0]["Groups"]
    assert "Shared" in json.dumps(imported)
    assert second == {"Fn::GetAtt": [own, "GroupId"]}


def test_app_tags_reach_instances_and_group() -> None:
    stack = new_stack()
    NeuronNodeGroup(stack, "Group", cluster=existing_cluster(stack), instance_type=TRN1)
    Tags.of(stack).add("team", "ml")
    template = synthesize(stack)
    assert template.properties(GROUP)["Tags"]["team"] == "ml"
    specifications = template.properties(TEMPLATE)["LaunchTemplateData"]["TagSpecifications"]
    assert all({"Key": "team", "Value": "ml"} in one["Tags"] for one in specifications)


def test_volume_key_allows_auto_scaling_to_launch() -> None:
    stack = new_stack()
    key = kms.Key(stack, "Key")
    NeuronNodeGroup(stack, "Group", cluster=existing_cluster(stack), instance_type=TRN1, volume_key=key)
    template = synthesize(stack)
    assert "AWSServiceRoleForAutoScaling" in json.dumps(template.properties("AWS::KMS::Key")["KeyPolicy"])
    (volume,) = template.properties(TEMPLATE)["LaunchTemplateData"]["BlockDeviceMappings"]
    assert (volume["DeviceName"], volume["Ebs"]["Encrypted"]) == ("/dev/xvda", True)
    assert "KmsKeyId" in volume["Ebs"]


def test_connections_open_ports_of_the_nodes() -> None:
    stack = new_stack()
    cluster = existing_cluster(stack)
    group = NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    group.connections.allow_from(ec2.SecurityGroup(stack, "App", vpc=cluster.vpc), ec2.Port.tcp(8080))
    ports = [rule["Properties"].get("FromPort") for rule in synthesize(stack).resources(INGRESS).values()]
    assert ports.count(8080) == 1


INGRESS = "AWS::EC2::SecurityGroupIngress"


def some_role(stack: Stack, construct_id: str, service: str) -> iam.Role:
    principal: Any = iam.ServicePrincipal(service)
    return iam.Role(stack, construct_id, assumed_by=principal)


@cache
def granted_template() -> Template:
    """A template with every grant of this module."""
    stack = new_stack()
    cluster = existing_cluster(stack)
    group = NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    group.grant_scale(some_role(stack, "Scaler", "scheduler.amazonaws.com"))
    trainer = PodRole(stack, "Trainer", cluster=cluster, namespace="training", service_account="trainer")
    CompileCache(stack, "Cache").grant_read_write(trainer)
    return synthesize(stack)


def test_grant_scale_is_on_the_group_only() -> None:
    template = granted_template()
    arn = f"${{{template.logical_id(GROUP)}.Arn}}"
    of_eks = {pair for pair in granted(statements(template)) if pair[0].startswith("eks:")}
    assert of_eks == {("eks:DescribeNodegroup", arn), ("eks:UpdateNodegroupConfig", arn)}
    known = load_resource("cfnlint.data.AdditionalSpecs", "Policies.json")["eks"]["Actions"]
    assert all("nodegroup" in known[name.partition(":")[2].lower()]["Resources"] for name, _ in of_eks)


def test_role_of_nodes_has_only_the_policies_that_eks_requires() -> None:
    template = group_template(quota_check=False)
    role = template.properties("AWS::IAM::Role")
    assert role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert {as_text(arn).rpartition("/")[2] for arn in role["ManagedPolicyArns"]} == {
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
    }
    assert not template.resources("AWS::IAM::Policy")


def test_pods_of_the_service_account_get_the_granted_role() -> None:
    template = granted_template()
    association = template.resources("AWS::EKS::PodIdentityAssociation")
    ((logical_id, resource),) = association.items()
    properties = resource["Properties"]
    role = properties["RoleArn"]["Fn::GetAtt"][0]
    assert {key: properties[key] for key in ("ClusterName", "Namespace", "ServiceAccount")} == {
        "ClusterName": "prod",
        "Namespace": "training",
        "ServiceAccount": "trainer",
    }
    (trust,) = template.resources()[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    (policy,) = [
        name
        for name, one in template.resources("AWS::IAM::Policy").items()
        if {"Ref": role} in one["Properties"]["Roles"]
    ]
    assert policy in template.before(logical_id)


def test_cfn_lint_finds_only_needless_dependencies() -> None:
    for template in (two_nodes(), granted_template()):
        assert {one.rule for one in lint(template.file, REGION)} <= {CDK_WRITES_NEEDLESS_DEPENDENCIES}


def test_cloudformation_validate_and_cdk_nag_find_nothing(tmp_path: Path) -> None:
    app: App = new_app(tmp_path, validated=True)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stack = Stack(app, "Nodes", env=Environment(region=REGION))
    cluster = existing_cluster(stack)
    NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1).grant_scale(
        some_role(stack, "Scaler", "scheduler.amazonaws.com")
    )
    PodRole(stack, "Trainer", cluster=cluster, service_account="trainer")
    app.synth()
    assert violations(tmp_path) == []


def violations(folder: Path) -> list[str]:
    """The findings of a validated app, without the warnings of this package."""
    report = json.loads((folder / "validation-report.json").read_text())
    found = [one["ruleName"] for plugin in report["pluginReports"] for one in plugin["violations"]]
    return [name for name in found if not name.startswith("Annotation::trn:")]
