"""User data of the nodes of an EKS cluster, and their boot before kubelet starts, on a node in a folder."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.booting_node import BootingNode, Run
from tests.userdata.parts import parts_of
from tests.userdata.plans import every_plan, plan_for
from tests.userdata.test_script import LONGEST_LOCATIONS
from tests.userdata.verified_node import VerifiedNode
from trainium_core.facts import facts
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.eks import TAINTS
from trainium_userdata.script import eks_node_script, eks_user_data

PLAN = plan_for("trn1.32xlarge")
EKS_PART = 6_144
"""Bytes for what EKS adds to the user data: the cluster's certificate, endpoint and labels, and user-defined parts."""
KUBELET = "etc/eks/kubelet/environment"
OF_EKS = "--register-with-taints=aws.amazon.com/neuron=true:NoSchedule"


def files_of(document: str) -> dict[str, str]:
    configuration = yaml.safe_load(parts_of(document)["text/cloud-config"])
    return {file["path"].lstrip("/"): file["content"] for file in configuration["write_files"]}


class EksNode(BootingNode):
    """A node on which cloud-init has written the files, and nodeadm the flags of kubelet."""

    def __init__(self, folder: Path, aws: AwsStandIn) -> None:
        super().__init__(folder, PLAN, aws)
        self.script = eks_node_script(node_settings(PLAN))
        self.write("asset", self.script)
        files = files_of(eks_user_data(LONGEST_LOCATIONS, script=self.script))
        for path, text in files.items():
            self.write(path, text)
        (self.programs / "cmp").symlink_to(str(shutil.which("cmp")))
        self.record_calls("aws", 'cp "$ROOT/asset" "${@: -1}"')
        (flag,) = yaml.safe_load(files["etc/eks/nodeadm.d/50-trn.yaml"])["spec"]["kubelet"]["flags"]
        self.flags(OF_EKS, flag)

    def flags(self, *flags: str) -> None:
        self.write(KUBELET, f"PATH=/bin\nNODEADM_KUBELET_ARGS=--v=2 {' '.join(flags)}")

    def start(self, trn_node: str = "true") -> Run:
        """Run the commands of trn-node.service, with a stand-in for `trn-node`."""
        installed = self._run("opt/trn/install.sh")
        if installed.exit_code:
            return installed
        self.replace_trn_node(trn_node)
        return self._run("opt/trn/boot.sh")


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> EksNode:
    return EksNode(tmp_path, aws)


def test_user_data_leave_room_for_the_part_of_eks():
    limit = facts()["user_data"]["limit_bytes"] - EKS_PART
    document = eks_user_data(LONGEST_LOCATIONS, script=eks_node_script(node_settings(PLAN)))
    assert len(document.encode()) < limit


def test_user_data_have_only_cloud_config():
    document = eks_user_data(LONGEST_LOCATIONS, script="")
    parts = parts_of(document)
    assert list(parts) == ["text/cloud-config"]
    configuration = yaml.safe_load(parts["text/cloud-config"])
    assert configuration["runcmd"] == [["systemctl", "daemon-reload"]]
    digest = hashlib.sha256(b"").hexdigest()
    assert digest in files_of(document)["opt/trn/install.sh"]


def test_new_nodes_have_both_taints():
    config = yaml.safe_load(files_of(eks_user_data(LONGEST_LOCATIONS, script=""))["etc/eks/nodeadm.d/50-trn.yaml"])
    assert config == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"kubelet": {"flags": [f"--register-with-taints={','.join(TAINTS)}"]}},
    }


def test_every_type_has_a_script_of_the_program_and_its_plan():
    for plan in every_plan():
        if not plan.type.is_gpu:
            script = eks_node_script(node_settings(plan))
            assert all(
                name in script for name in ("/opt/trn/trn_eks/__main__.py", '"scope": "host"', "/opt/trn/boot.sh")
            )


def test_healthy_host_lets_kubelet_start_and_sends_no_record(node: EksNode):
    run = node.start()
    assert (run.exit_code, run.calls) == (0, ["trn-node verify --hold"]), run.output


def test_driver_that_may_recover_is_reloaded_once(node: EksNode):
    run = node.start('[[ "$*" == *--last* ]] || exit 3')
    assert (run.exit_code, run.calls) == (
        0,
        ["trn-node verify --hold", "rmmod neuron", "modprobe neuron", "trn-node verify --last --hold"],
    )


def test_failed_host_keeps_kubelet_from_starting(node: EksNode):
    assert node.start("exit 1").exit_code == 1


@pytest.mark.parametrize("flags", [[], [OF_EKS], [f"--register-with-taints={TAINTS[1]}", OF_EKS]], ids=len)
def test_kubelet_without_the_taint_does_not_start(node: EksNode, flags: list[str]):
    node.flags(*flags)
    run = node.start()
    assert run.exit_code == 1
    (call,) = run.calls
    assert call.startswith("trn-node report failed kubelet would register the node without the taint trn/unverified")


def test_program_is_installed_once_on_an_instance(node: EksNode):
    assert node.start().exit_code == 0
    (node.programs / "aws").unlink()
    assert node.start().exit_code == 0
    node.write("var/lib/cloud/data/instance-id", INSTANCE_ID.replace("0", "1"))
    run = node.start()
    assert (run.exit_code, "the node script could not be fetched" in run.output) == (1, True)


def test_changed_script_is_refused(node: EksNode):
    node.write("asset", "echo other")
    run = node.start()
    assert run.exit_code == 1
    assert "is not the one that was deployed" in run.output


def test_host_checks_only_devices_interfaces_and_clock(tmp_path: Path, aws: AwsStandIn):
    node = VerifiedNode(tmp_path, PLAN, aws)
    node.expect(scope="host", framework=None, scratch=None)
    for program in ("fi_info", "su", "systemctl", "nccom-test", "runuser"):
        (node.programs / program).unlink()
    run = node.run("verify", "--hold")
    assert run.exit_code == 0, run.output
    assert run.record is None
    names = {"driver", "neuron-devices", "neuron-cores", "device-memory", "efa-devices", "time-sync"}
    record: dict[str, Any] = yaml.safe_load(node.read("var/lib/trn/record.json"))
    assert (record["state"], {check["name"] for check in record["checks"]}) == ("verified", names)


def test_host_with_a_missing_interface_stores_its_failure(tmp_path: Path, aws: AwsStandIn):
    node = VerifiedNode(tmp_path, PLAN, aws)
    node.expect(scope="host", framework=None, scratch=None)
    (node.root / "sys/class/infiniband/rdmap3s27").rmdir()
    run = node.run("verify", "--hold")
    assert run.exit_code == 1
    assert run.record
    assert run.record.reason == "7 of 8 EFA devices"
