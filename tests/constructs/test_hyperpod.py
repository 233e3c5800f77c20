"""The HyperPod cluster of a plan with each of the two orchestrators."""

from typing import Any

import pytest

from tests.constructs.plans import reserved
from tests.constructs.synth import EXISTING_NETWORK, Json, as_text, granted, statements
from tests.constructs.training import EKS_CLUSTER, TRAINING_PLAN, hyperpod_template

EKS: dict[str, Any] = {"hyperpod_orchestrator": "eks", "hyperpod_eks_cluster": EKS_CLUSTER, **EXISTING_NETWORK}


def cluster(**settings: Any) -> Json:
    return hyperpod_template(**settings).properties("AWS::SageMaker::Cluster")


def group(name: str, **settings: Any) -> Json:
    groups = {group["InstanceGroupName"]: group for group in cluster(**settings)["InstanceGroups"]}
    return groups[name]


def test_slurm_cluster_has_one_controller() -> None:
    assert cluster()["Orchestrator"] == {"Slurm": {"SlurmConfigStrategy": "Managed"}}
    assert group("controller")["InstanceCount"] == 1
    assert group("controller")["SlurmConfig"] == {"NodeType": "Controller"}
    assert group("workers")["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["trainium"]}


def test_existing_eks_cluster_is_the_orchestrator() -> None:
    assert cluster(**EKS)["Orchestrator"] == {"Eks": {"ClusterArn": EKS_CLUSTER}}
    assert [group["InstanceGroupName"] for group in cluster(**EKS)["InstanceGroups"]] == ["workers"]
    assert "SlurmConfig" not in group("workers", **EKS)


@pytest.mark.parametrize(("setting", "mode"), [(True, "Automatic"), (False, "None")])
def test_faulty_nodes_are_replaced_if_recovery_is_on(setting: bool, mode: str) -> None:
    assert cluster(node_recovery=setting)["NodeRecovery"] == mode


@pytest.mark.parametrize(
    ("nodes", "checks"), [(1, ["InstanceStress"]), (2, ["InstanceStress", "InstanceConnectivity"])]
)
def test_connectivity_is_checked_only_with_several_nodes(nodes: int, checks: list[str]) -> None:
    assert group("workers", nodes=nodes)["OnStartDeepHealthChecks"] == checks


def test_training_plan_applies_only_to_workers() -> None:
    settings = {"hyperpod_training_plan": TRAINING_PLAN}
    assert group("workers", **settings)["TrainingPlanArn"] == TRAINING_PLAN
    assert "TrainingPlanArn" not in group("controller", **settings)


def test_interfaces_are_efa_only_if_the_plan_requires_it() -> None:
    assert "NetworkInterface" not in group("workers")
    assert group("workers", secondary_interface_type="efa-only")["NetworkInterface"] == {"InterfaceType": "efa-only"}


@pytest.mark.parametrize(("settings", "hook"), [({}, "OnInitComplete"), (EKS, "OnCreate")], ids=["slurm", "eks"])
def test_lifecycle_script_runs_at_the_event_of_its_orchestrator(settings: Json, hook: str) -> None:
    lifecycle = group("workers", **settings)["LifeCycleConfig"]
    assert lifecycle.keys() == {"SourceS3Uri", hook}
    (files,) = hyperpod_template(**settings).resources("Custom::TrnBucketFiles").values()
    assert lifecycle[hook] in files["Properties"]["Files"]


def test_longest_bucket_name_fits_into_the_limit_of_s3() -> None:
    template = hyperpod_template(cluster_name="c" * 32)
    (bucket,) = [r for name, r in template.resources("AWS::S3::Bucket").items() if "Lifecycle" in name]
    prefix = bucket["Properties"]["BucketName"]["Fn::Join"][1][0]
    assert len(prefix) + len("0123456789ab") <= 63


def test_cluster_depends_on_scripts_permissions_and_network() -> None:
    template = hyperpod_template()
    before = template.before(template.logical_id("AWS::SageMaker::Cluster"))
    needed = {template.logical_id("Custom::TrnBucketFiles")}
    needed |= {name for name in template.resources("AWS::IAM::Policy") if "Execution" in name}
    needed |= set(template.resources("AWS::EC2::SecurityGroupIngress"))
    needed |= set(template.resources("AWS::EC2::SecurityGroupEgress"))
    needed |= set(template.resources("AWS::EC2::Route"))
    assert needed <= before


def test_nodes_connect_to_each_other_over_efa_in_both_directions() -> None:
    template = hyperpod_template()
    (own,) = [n for n in template.resources("AWS::EC2::SecurityGroup") if "Nodes" in n]
    assert cluster()["VpcConfig"]["SecurityGroupIds"] == [{"Fn::GetAtt": [own, "GroupId"]}]
    for direction, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        rule = template.properties(f"AWS::EC2::SecurityGroup{direction}")
        assert (rule["IpProtocol"], rule["GroupId"]) == ("-1", rule[other])


def test_nodes_join_the_security_group_of_their_eks_cluster() -> None:
    settings = {**EKS, "hyperpod_eks_security_group": "sg-0123456789abcdef0"}
    own, of_eks = cluster(**settings)["VpcConfig"]["SecurityGroupIds"]
    assert of_eks == "sg-0123456789abcdef0"
    rules = hyperpod_template(**settings).resources("AWS::EC2::SecurityGroupIngress").values()
    assert {as_text(rule["Properties"]["GroupId"]) for rule in rules} == {as_text(own)}
    named = {resource.split(":")[-1] for _, resource in granted(statements(hyperpod_template(**settings)))}
    assert "security-group/sg-0123456789abcdef0" in named


@pytest.mark.parametrize(
    ("settings", "ports"),
    [({}, {80, 443}), ({"egress": "vpc-endpoints"}, {443}), (EKS, {80, 443})],
    ids=["nat-gateway", "vpc-endpoints", "own-vpc"],
)
def test_http_egress_is_open_with_internet_access(settings: Json, ports: set[int]) -> None:
    groups = hyperpod_template(**settings).resources("AWS::EC2::SecurityGroup")
    (rules,) = [r["Properties"]["SecurityGroupEgress"] for name, r in groups.items() if "Nodes" in name]
    assert {rule["FromPort"] for rule in rules} == ports


ENDS: dict[str, Any] = {"ends": "5d"}


def test_clock_of_hyperpod_may_only_delete_its_stack_and_notify() -> None:
    template = hyperpod_template(**ENDS)
    (policy,) = [p for name, p in template.resources("AWS::IAM::Policy").items() if "PilotClockPolicy" in name]
    allowed = granted(policy["Properties"]["PolicyDocument"]["Statement"])
    assert {action for action, _ in allowed} == {
        "cloudformation:DeleteStack",
        "cloudformation:DescribeStacks",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sns:ListTagsForResource",
        "sns:Publish",
        "sns:TagResource",
        "sns:UntagResource",
    }
    assert ("cloudformation:DeleteStack", "${AWS::StackId}") in allowed


def test_clock_is_deleted_after_the_cluster_so_that_it_can_retry() -> None:
    template = hyperpod_template(**ENDS)
    before = template.before(template.logical_id("AWS::SageMaker::Cluster"))
    assert {template.logical_id("AWS::Scheduler::Schedule"), template.logical_id("AWS::SNS::Topic")} <= before


def test_capacity_block_of_the_plan_adds_no_clock_to_hyperpod() -> None:
    block = {"capacity": "capacity-block", **reserved("capacity-block")}
    assert not hyperpod_template(**block).resources("AWS::Scheduler::Schedule")


def test_budget_without_an_end_adds_no_clock() -> None:
    template = hyperpod_template(budget_usd=500)
    assert len(template.resources("AWS::Budgets::Budget")) == 1
    assert not template.resources("AWS::Scheduler::Schedule")
