"""Every public construct in one stack, renamed by one update and removed by another, with permissions enforced."""

from collections.abc import Callable

import pytest
from aws_cdk import Duration, Environment, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

from tests.constructs.synth import REGION, Template, a_plan, new_app, synthesize
from tests.deploy.account import Account, differences
from tests.deploy.conftest import ON_DEMAND_TRN, QUOTA_VCPUS
from trainium_cdk import (
    Budget,
    ClusterNetwork,
    CompileCache,
    EfaSecurityGroup,
    EksJobs,
    ElasticFileSystem,
    LustreFileSystem,
    NeuronFleet,
    NeuronLaunchTemplate,
    NeuronNodeGroup,
    NeuronSubnet,
    NodeVerification,
    PcsCluster,
    PilotEnd,
    QuotaCheck,
    SageMakerTraining,
    SleepSwitch,
    TrainiumCluster,
)
from trainium_local.server import Settings

KIND = ec2.InstanceType("trn1.2xlarge")


def add_everything(stack: Stack, prefix: str) -> None:
    """Add each construct that one stack can have, with IDs that begin with a prefix."""
    network = ClusterNetwork(stack, f"{prefix}Network", zone_id="usw2-az4")
    vpc, subnet = network.vpc, network.subnet
    sleep = SleepSwitch(stack, f"{prefix}Switch")
    cache = CompileCache(stack, f"{prefix}Cache")
    lustre = LustreFileSystem(stack, f"{prefix}Lustre", vpc=vpc, subnet=subnet, size=Size.gibibytes(1200))
    NeuronFleet(
        stack,
        f"{prefix}Fleet",
        instance_type=KIND,
        cluster_name="fleet",
        vpc=vpc,
        cache=cache,
        file_systems=[lustre, ElasticFileSystem(stack, f"{prefix}Efs", vpc=vpc, subnet=subnet)],
        end=PilotEnd.after(Duration.hours(8)),
        budget=Budget.usd(100, stop=True),
        sleep=sleep,
    ).add_outputs()
    SageMakerTraining(stack, f"{prefix}Training", cluster_name="fleet", cache=cache)
    group = EfaSecurityGroup(stack, f"{prefix}Group", vpc=vpc)
    NeuronLaunchTemplate(
        stack,
        f"{prefix}Template",
        instance_type=KIND,
        security_groups=[group],
        instance_profile=iam.InstanceProfile(stack, f"{prefix}Profile"),
    )
    NeuronSubnet(stack, f"{prefix}Subnet", vpc=vpc, instance_type=KIND)
    QuotaCheck(stack, f"{prefix}Quota", instance_type=KIND)


def add_planned(stack: Stack, prefix: str) -> None:
    plan = a_plan(instance_type="trn1.2xlarge", nodes=1, cluster_name="planned", ends="40h", budget_usd=100)
    TrainiumCluster(stack, f"{prefix}Cluster", plan=plan, sleep=SleepSwitch(stack, f"{prefix}Switch"))


def add_slurm(stack: Stack, prefix: str) -> None:
    plan = a_plan(cluster_name=f"slurm-{prefix.lower()}", stacks=("pcs",), ends="40h", pcs_ami="ami-0123456789abcdef0")
    PcsCluster(stack, f"{prefix}Slurm", plan=plan)


def add_eks(stack: Stack, prefix: str) -> None:
    """An EKS cluster with each prefix: a second association of a service account of one cluster would be refused."""
    name = f"eks-{prefix.lower()}"
    vpc = ec2.Vpc(stack, f"{prefix}Vpc", availability_zones=[f"{REGION}{letter}" for letter in "cd"], nat_gateways=1)
    cluster = eks.Cluster(
        stack,
        f"{prefix}Eks",
        cluster_name=name,
        version=eks.KubernetesVersion.V1_35,
        vpc=vpc,
        default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
        default_capacity=0,
    )
    verification = NodeVerification(stack, f"{prefix}Verification", image="image:1")
    NeuronNodeGroup(
        stack,
        f"{prefix}Group",
        cluster=cluster,
        instance_type=KIND,
        cluster_name=name,
        node_verification=verification,
    )
    plan = a_plan(instance_type="trn1.2xlarge", nodes=1, cluster_name=name, stacks=("eks",), eks_cluster=name)
    EksJobs(stack, f"{prefix}Jobs", plan=plan).node.add_dependency(cluster)


ADDED = {"Everything": add_everything, "Planned": add_planned, "Slurm": add_slurm, "Eks": add_eks}


def template(name: str, prefix: str) -> Template:
    """The template of a stack with its constructs. Without a prefix, only the placeholder."""
    stack = Stack(new_app(), name, env=Environment(region=REGION))
    sns.Topic(stack, "Placeholder")
    if prefix:
        ADDED[name](stack, prefix)
    return synthesize(stack)


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    return start_account(Settings(iam="enforced", quotas={ON_DEMAND_TRN: QUOTA_VCPUS}))


@pytest.mark.parametrize("name", ADDED)
def test_renamed_and_removed_constructs_leave_nothing(account: Account, name: str) -> None:
    account.deploy(template(name, ""), name)
    before = account.inventory()
    for prefix in ("First", "Second", ""):
        account.deploy(template(name, prefix), name)
    assert differences(before, account.inventory()) == []
