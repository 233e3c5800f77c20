"""examples/eks: deployed as its README says, changed and destroyed with the CDK CLI."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.constructs.synth import ROOT
from tests.deploy.account import Account, differences
from tests.deploy.conftest import ON_DEMAND_TRN, QUOTA_VCPUS
from trainium_local.server import Settings

REGION, CLUSTER, STACK = "us-east-2", "training", "TrainingOnEks"


@pytest.fixture(scope="module")
def account(start_account: Callable[..., Account]) -> Account:
    return start_account(Settings(region=REGION, quotas={ON_DEMAND_TRN: QUOTA_VCPUS}))


def cdk(account: Account, command: str, folder: Path, *options: str) -> None:
    run = account.cdk(command, STACK, *options, folder=folder, tools=[Path(sys.executable).parent])
    assert run.code == 0, run.printed


def test_example_is_deployed_changed_and_destroyed(account: Account, tmp_path: Path) -> None:
    before = account.inventory()
    folder = tmp_path / "eks"
    shutil.copytree(ROOT / "examples/eks", folder)
    cdk(account, "deploy", folder, "--require-approval", "never")
    eks, ec2 = account.aws.client("eks"), account.aws.client("ec2")
    names = eks.list_nodegroups(clusterName=CLUSTER)["nodegroups"]
    assert len(names) == 3
    found = [eks.describe_nodegroup(clusterName=CLUSTER, nodegroupName=name)["nodegroup"] for name in names]
    groups = {one["labels"]["trn/cluster"]: one for one in found if "trn/cluster" in one["labels"]}
    assert groups.keys() == {"eks-trn1", "eks-trn2"}
    assert {one["scalingConfig"]["desiredSize"] for one in groups.values()} == {0}
    cluster = eks.describe_cluster(name=CLUSTER)["cluster"]["resourcesVpcConfig"]
    for group in groups.values():
        (subnet,) = ec2.describe_subnets(SubnetIds=group["subnets"])["Subnets"]
        assert subnet["VpcId"] == cluster["vpcId"]
        template = ec2.describe_launch_template_versions(LaunchTemplateId=group["launchTemplate"]["id"])
        (version,) = template["LaunchTemplateVersions"]
        interfaces = version["LaunchTemplateData"]["NetworkInterfaces"]
        assert {one["Groups"][0] for one in interfaces} == {cluster["clusterSecurityGroupId"]}
    (subnet,) = ec2.describe_subnets(SubnetIds=groups["eks-trn1"]["subnets"])["Subnets"]
    assert subnet["AvailabilityZoneId"] == "use2-az3"  # the only zone with trn1.32xlarge
    (association,) = eks.list_pod_identity_associations(clusterName=CLUSTER)["associations"]
    assert (association["namespace"], association["serviceAccount"]) == ("training", "trn-job")

    app = folder / "app.py"
    app.write_text(app.read_text().replace("desired_nodes=0", "desired_nodes=1"))
    cdk(account, "deploy", folder, "--require-approval", "never")
    changed = eks.describe_nodegroup(clusterName=CLUSTER, nodegroupName=groups["eks-trn1"]["nodegroupName"])
    assert changed["nodegroup"]["scalingConfig"]["desiredSize"] == 1

    cdk(account, "destroy", folder, "--force")
    assert eks.list_clusters()["clusters"] == []
    assert differences(before, account.inventory()) == []
