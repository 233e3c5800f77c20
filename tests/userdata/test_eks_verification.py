"""The program of the verification's pods, as a process, against a stand-in for the Kubernetes API server."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.frameworks import torch_modules
from tests.userdata.neuron_ls import devices_of
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import PACKAGES, RECORD_KEY, VerifiedNode
from tools.lab.certificates import make_certificates
from tools.lab.eks.api_server import KUBELET, MERGE_PATCH, NODES, POD, ApiServer
from tools.lab.eks.kubernetes import problems
from trainium_userdata.eks import TAINTS, verification_objects
from trainium_wire.kubernetes import BOOT_ANNOTATION, NEURON, STATE_ANNOTATION, UNVERIFIED
from trainium_wire.node_record import NodeRecord

PLAN = plan_for("trn1.2xlarge")
NAME, BOOT = "ip-10-42-0-11.us-west-2.compute.internal", "5d6a7f0e-0000-4000-8000-000000000001"
ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
SECONDS = 60


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_certificates(tmp_path_factory.mktemp("tls") / "certificates", ("localhost",))


@pytest.fixture
def kubernetes(certificates: Any) -> Iterator[ApiServer]:
    with ApiServer("127.0.0.1", certificates) as server:
        yield server


class Pod:
    """A node of an EKS cluster whose host checks passed, and the pod of the verification on it."""

    def __init__(self, folder: Path, aws: AwsStandIn, kubernetes: ApiServer) -> None:
        self.node, self.kubernetes = VerifiedNode(folder, PLAN, aws), kubernetes
        self.node.expect(scope="host", framework=None, scratch=None)
        self.install_framework()
        self.node.write(f"{ACCOUNT}/token", POD)
        shutil.copy(kubernetes.certificates.authority, self.node.root / ACCOUNT / "ca.crt")
        self.boot(BOOT)
        host = {"name": "time-sync", "expected": "synchronised", "found": "synchronised", "ok": True}
        stale = {"name": "driver", "expected": "loaded", "found": "on the host", "ok": True}
        record = {"instance_id": "", "state": "verified", "reason": "", "checks": [host, stale]}
        self.node.write("var/lib/trn/record.json", json.dumps(record))
        self._process: subprocess.Popen[str] | None = None

    def install_framework(self, **fault: Any) -> None:
        """Put PyTorch/XLA into the image, whose Python has no other packages."""
        python = Path(sys.executable).resolve()
        self.node.write("image/pyvenv.cfg", f"home = {python.parent}\ninclude-system-site-packages = false\n")
        for path, text in torch_modules(**fault).items():
            self.node.write(f"image/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/{path}", text)
        link = self.node.root / "image/bin/python3"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(python)

    def boot(self, boot: str) -> None:
        self.node.write("proc/sys/kernel/random/boot_id", f"{boot}\n")

    def register(self, *, tainted: bool = True) -> None:
        """Create the Node as kubelet does."""
        keys = [NEURON, *([UNVERIFIED] if tainted else [])]
        taints = [{"key": key, "value": "true", "effect": "NoSchedule"} for key in keys]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}, "spec": {"taints": taints}}
        headers = {"Authorization": f"Bearer {KUBELET}"}
        assert self.kubernetes.respond("POST", "/api/v1/nodes", headers, json.dumps(node).encode())[0] == 201

    def start(self) -> None:
        (self.node.root / "tmp/trn-verified").unlink(missing_ok=True)  # The container has a new file system.
        self._process = subprocess.Popen(
            [self.node.root / "image/bin/python3", "-m", "trn_eks"],
            env={
                "PATH": f"{self.node.programs}:{os.environ['PATH']}",
                "PYTHONPATH": PACKAGES,
                "ROOT": str(self.node.root),
                "NODE_NAME": NAME,
                "KUBERNETES_SERVICE_HOST": "localhost",
                "KUBERNETES_SERVICE_PORT": str(self.kubernetes.port),
                "TRN_VERIFY_ATTEMPTS": "1",
                "TRN_VERIFY_PAUSE": "0.05",
                "TRN_HTTP_RETRIES": "1",
                "TRN_HTTP_PAUSE": "0",
                **self.node.aws.loopback_environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, condition: Callable[[], object]) -> None:
        assert self._process
        deadline = time.monotonic() + SECONDS
        while not condition():
            over = self._process.poll() is not None or time.monotonic() > deadline
            assert not over, f"{self._process.poll()}: {self.stop()}"
            time.sleep(0.02)

    def stop(self) -> str:
        """End the pod as kubelet does, and return its output."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        return self._process.communicate(timeout=SECONDS)[0]

    @property
    def exit_code(self) -> int:
        assert self._process
        return self._process.wait(SECONDS)

    @property
    def is_ready(self) -> bool:
        return (self.node.root / "tmp/trn-verified").exists()

    @property
    def state(self) -> str:
        return self.kubernetes.annotations(NAME).get(STATE_ANNOTATION, "")

    @property
    def taints(self) -> list[str]:
        return self.kubernetes.taints(NAME)

    @property
    def record(self) -> NodeRecord | None:
        text = self.node.aws.records.get(RECORD_KEY)
        return NodeRecord.from_json(text) if text else None


@pytest.fixture
def pod(tmp_path: Path, aws: AwsStandIn, kubernetes: ApiServer) -> Iterator[Pod]:
    made = Pod(tmp_path, aws, kubernetes)
    yield made
    made.stop()


def test_verified_node_loses_only_its_own_taint(pod: Pod):
    pod.register()
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    assert (pod.taints, pod.state) == ([NEURON], "verified")
    assert pod.kubernetes.annotations(NAME)[BOOT_ANNOTATION] == BOOT
    assert pod.kubernetes.refused == []


def test_record_has_the_checks_of_host_and_pod(pod: Pod):
    pod.register()
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    assert pod.record
    assert pod.record.state == "verified"
    found = {check.name: check.found for check in pod.record.checks}
    assert found["time-sync"] == "synchronised"
    assert found["driver"] != "on the host"
    assert found["self-test"].startswith("2 of 2 cores")
    assert {"efa-devices", "framework", "memory-test", "collectives", "hardware-errors"} <= found.keys()
    assert not {"memlock", "reserved-ports", "nvme"} & found.keys()


def wrong_numbers(pod: Pod) -> None:
    pod.install_framework(fault="zeros", core=1)


def no_framework(pod: Pod) -> None:
    shutil.rmtree(pod.node.root / "image/lib")


def missing_device(pod: Pod) -> None:
    pod.node.neuron_ls([device for device in devices_of(PLAN) if device["neuron_device"] != 0])


def s3_refuses(pod: Pod) -> None:
    pod.node.aws.s3_refuses = True


@pytest.mark.parametrize(
    ("break_", "reason"),
    [
        (wrong_numbers, "failed: core 1 returns zeros where the CPU returns"),
        (no_framework, "failed: the image has none of torch_xla, torch_neuronx, jax for python3"),
        (missing_device, "failed: 0 of 1 Neuron devices"),
        (s3_refuses, "failed: the record did not reach S3"),
    ],
)
def test_failed_node_keeps_its_taint_and_shows_the_reason(pod: Pod, break_: Callable[[Pod], None], reason: str):
    break_(pod)
    pod.register()
    pod.start()
    pod.wait_for(lambda: pod.state.startswith("failed"))
    assert pod.state.startswith(reason)
    assert pod.record is None if break_ is s3_refuses else pod.record and pod.record.state == "failed"
    assert {UNVERIFIED in change.taints for change in pod.kubernetes.changes[NAME]} == {True}
    assert not pod.is_ready


def fail(pod: Pod) -> None:
    """Let a pod find that the node has failed, and end."""
    missing_device(pod)
    pod.register()
    pod.start()
    pod.wait_for(lambda: pod.state.startswith("failed"))
    pod.stop()


def test_new_pod_verifies_a_failed_node_again(pod: Pod):
    fail(pod)
    pod.node.neuron_ls(devices_of(PLAN))
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    assert (pod.taints, pod.record and pod.record.state) == ([NEURON], "verified")


def test_failure_of_a_new_pod_keeps_the_time_of_the_first_failure(pod: Pod):
    fail(pod)
    record = json.loads(pod.node.read("var/lib/trn/record.json"))
    pod.node.write("var/lib/trn/record.json", json.dumps({**record, "time": "2026-11-24T11:00:00Z"}))
    pod.start()
    pod.wait_for(lambda: pod.record and pod.record.time == "2026-11-24T11:00:00Z")
    assert pod.record
    assert pod.record.state == "failed"


def test_pod_that_ended_during_the_tests_leaves_the_time_of_their_begin(pod: Pod):
    pod.register()
    patch = {"metadata": {"annotations": {STATE_ANNOTATION: "running since 2026-11-24T11:00:00Z"}}}
    headers = {"Authorization": f"Bearer {POD}", "Content-Type": MERGE_PATCH}
    assert pod.kubernetes.respond("PATCH", f"{NODES}/{NAME}", headers, json.dumps(patch).encode())[0] == 200
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    states = [change.annotations.get(STATE_ANNOTATION) for change in pod.kubernetes.changes[NAME]]
    assert states[-2:] == ["running since 2026-11-24T11:00:00Z", "verified"]


def test_node_is_verified_once_in_each_boot(pod: Pod):
    pod.register()
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    pod.stop()
    changes = len(pod.kubernetes.changes[NAME])
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    pod.stop()
    assert len(pod.kubernetes.changes[NAME]) == changes
    pod.boot(BOOT.replace("1", "2"))
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    after = pod.kubernetes.changes[NAME][changes:]
    assert [UNVERIFIED in change.taints for change in after] == [True, False]


def test_node_without_taint_gets_it_before_its_verification(pod: Pod):
    missing_device(pod)
    pod.register(tainted=False)
    pod.start()
    pod.wait_for(lambda: pod.state.startswith("failed"))
    assert [UNVERIFIED in change.taints for change in pod.kubernetes.changes[NAME]] == [False, True, True]


def test_verification_waits_until_no_process_uses_the_devices(pod: Pod):
    busy = [{**device, "neuron_processes": [{"pid": 7, "command": "train"}]} for device in devices_of(PLAN)]
    pod.node.neuron_ls(busy)
    pod.register()
    pod.start()
    pod.wait_for(lambda: pod.state == "waiting: NeuronCores are in use by train (7)")
    assert UNVERIFIED in pod.taints
    pod.node.neuron_ls(devices_of(PLAN))
    pod.wait_for(lambda: pod.is_ready)


def test_concurrent_change_of_the_node_is_kept(pod: Pod):
    pod.register()
    pod.kubernetes.conflicts = 3
    pod.start()
    pod.wait_for(lambda: pod.is_ready)
    assert pod.taints == [NEURON]
    assert [line.split(": ")[1] for line in pod.kubernetes.refused] == ["the object has been modified"] * 3


def test_unknown_boot_or_unreachable_kubernetes_verifies_nothing(pod: Pod):
    pod.register()
    pod.kubernetes.down = True
    pod.start()
    assert pod.exit_code == 1
    pod.kubernetes.down = False
    pod.boot("")
    pod.start()
    assert pod.exit_code == 1
    assert (UNVERIFIED in pod.taints, pod.record, pod.is_ready) == (True, None, False)


def test_objects_are_accepted_by_the_schemas_of_kubernetes():
    objects = verification_objects(image="111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1")
    assert [(one["kind"], problems(one)) for one in objects] == [
        (kind, []) for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet")
    ]


def test_pods_may_get_and_patch_nodes_and_nothing_else():
    (role,) = [one for one in verification_objects(image="i") if one["kind"] == "ClusterRole"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]


def test_pods_find_the_program_and_the_settings_of_the_host():
    (daemons,) = [one for one in verification_objects(image="i") if one["kind"] == "DaemonSet"]
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert {path for path, read_only in mounts.items() if not read_only} == {"/var/lib/trn"}
    assert {"/opt/trn", "/etc/trn", "/var/log/trn-node.log"} <= mounts.keys()


def test_taints_of_new_nodes_are_valid():
    parts = [re.fullmatch("(.+)=(.+):(.+)", text) for text in TAINTS]
    taints = [{"key": part[1], "value": part[2], "effect": part[3]} for part in parts if part]
    assert len(taints) == 2
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}, "spec": {"taints": taints}}
    assert problems(node) == []
    assert problems({**node, "spec": {"taints": [{**taints[0], "effect": "Never"}]}}) != []
