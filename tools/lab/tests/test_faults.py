"""A faulty node reports its fault, and the verdict on its fleet names the fault. All faulty nodes boot at once."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from tools.lab.hardware import hardware_of
from tools.lab.laboratory import Laboratory
from tools.lab.node import Node
from tools.lab.package_hosts import host_of
from tools.lab.plans import BARE, lab_plan
from tools.lab.proxy import ACCESS_DENIED, WRITING_DENIED
from tools.lab.proxy import Fault as S3Fault
from tools.lab.site import BUCKET, SHORT_TIMEOUTS, Outcome, Site
from trainium_core.catalog.neuron_software import neuron_packages

Breaking = Callable[[Laboratory, Node], object]


def change_nothing(_lab: Laboratory, _node: Node) -> None:
    """Do nothing: the fault is in the hardware or the plan."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of a node, and the pattern of its reason in the verdict.

    Attributes:
        hardware: Changed fields of the node's hardware.
        breaking: Changes the node, or what it reaches, before it is powered on.
        bare: Whether the node installs its Neuron software itself.
    """

    reported: str
    hardware: Mapping[str, Any] = field(default_factory=dict[str, Any])
    breaking: Breaking = change_nothing
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bare: bool = False


def other_driver(version: str) -> Breaking:
    return lambda _lab, node: node.write("usr/share/trnlab/neuron_driver", f"{version}\n")


def no_driver(_lab: Laboratory, node: Node) -> None:
    (node.root / "usr/share/trnlab/neuron_driver").unlink()


def full_disk(_lab: Laboratory, node: Node) -> None:
    """Fill only the disk that the installation uses: with all disks full, cloud-init itself fails without a message."""
    node.write("etc/systemd/system/opt-trn.mount", FULL_DISK)
    wants = node.root / "etc/systemd/system/local-fs.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "opt-trn.mount").symlink_to("../opt-trn.mount")


def repository_down(lab: Laboratory, node: Node) -> None:
    lab.proxy.hosts_down[node.instance.address] = frozenset({host_of(neuron_packages()["repository"]["apt"])})


def expired_key(lab: Laboratory, node: Node) -> None:
    lab.proxy.other_files[node.instance.address] = lab.package_hosts.with_expired_key


def refused(fault: S3Fault) -> Breaking:
    return lambda lab, node: lab.proxy.s3_faults.update({node.instance.address: fault})


def clock_behind(lab: Laboratory, node: Node) -> None:
    lab.proxy.clocks_behind[node.instance.address] = timedelta(hours=1)


FULL_DISK = "[Mount]\nWhat=trnlab\nWhere=/opt/trn\nType=tmpfs\nOptions=size=4k\n"
LUSTRE = {"fsx_lustre": 1200}

FAULTS = {
    "device missing": Fault(
        hardware={"missing_devices": (7,)},
        reported=r"15 of 16 Neuron devices \(missing: device 7\); 30 of 32 NeuronCores",
    ),
    "no driver": Fault(
        breaking=no_driver,
        reported=r"the Neuron driver \(aws-neuronx-dkms\) is not installed for this kernel",
    ),
    "driver does not load": Fault(
        hardware={"driver_loads": False},
        reported=r"the Neuron driver \S+ is not loaded",
    ),
    "driver and runtime mismatch": Fault(
        breaking=other_driver("2.26.5.0"),
        hardware={"zero_cores": (5,)},
        reported=r"driver 2\.26\.5\.0 and runtime \S+ are incompatible: runtime 2\.32 and later need driver 2\.27 or "
        r"later; install both from one Neuron release",
    ),
    "zeros from a core": Fault(
        hardware={"zero_cores": (5,)},
        reported=r"core 5 returns zeros where the CPU returns \d+",
    ),
    "wrong sums": Fault(
        hardware={"wrong_collectives": True},
        reported=r"all-reduce over 32 cores: nccom-test .*1 errors found",
    ),
    "7 of 8 EFA": Fault(
        hardware={"efa_devices": 7},
        reported=r"7 of 8 EFA devices",
    ),
    "clock skew": Fault(
        breaking=clock_behind,
        reported=r"the clock is 3[56]\d\d seconds behind S3's clock; S3 refuses requests if the clocks differ",
    ),
    "S3 denied": Fault(
        breaking=refused(WRITING_DENIED),
        reported=rf"the record did not reach S3: S3 refuses PUT s3://{BUCKET}/nodes/i-[0-9a-f]+\.json: "
        r"403 AccessDenied Access Denied \(read from its console: it could not report\)",
    ),
    "node script denied": Fault(
        breaking=refused(ACCESS_DENIED),
        reported=r"the node script could not be fetched.*: 403 AccessDenied Access Denied \(read from its console",
    ),
    "disk full": Fault(
        breaking=full_disk,
        reported=r"failed \(is the disk full\?\) \(read from its console",
    ),
    "disk full later": Fault(
        settings={"setup_script": "cat /dev/zero >/var/full"},
        reported=r"the setup script failed with exit code 1: .*No space left on device",
    ),
    "FSx timeout": Fault(
        hardware={"lustre_answers": False},
        settings=LUSTRE,
        reported=r"FSx for Lustre file system \S+ could not be mounted at /fsx: no answer within 3 seconds; check "
        r"that it is AVAILABLE, and that its security group lets the nodes in on TCP 988 and 1018-1023",
    ),
    "apt repository down": Fault(
        breaking=repository_down,
        settings=BARE,
        bare=True,
        reported=r"https://apt\.repos\.neuron\.amazonaws\.com/\S+ cannot be downloaded: does the network have internet",
    ),
    "expired key": Fault(
        breaking=expired_key,
        settings=BARE,
        bare=True,
        reported=r"apt-get update: the key .*has expired \(EXPKEYSIG\)",
    ),
}


@pytest.fixture(scope="module")
def outcomes(lab: Laboratory) -> Iterator[Mapping[str, Outcome]]:
    """The first report of each node."""
    nodes: dict[str, tuple[Site, Node]] = {}
    for name, fault in FAULTS.items():
        site = Site(lab, lab_plan(**fault.settings))
        hardware = replace(hardware_of(site.plan), **fault.hardware)
        node = site.node(hardware, layers=lab.bare if fault.bare else lab.image, environment=SHORT_TIMEOUTS)
        fault.breaking(lab, node)
        nodes[name] = (site, node)
    for _, node in nodes.values():
        node.power_on()
    yield {name: site.outcome(node) for name, (site, node) in nodes.items()}
    for _, node in nodes.values():
        lab.remove(node)


@pytest.mark.parametrize("name", FAULTS)
def test_verdict_names_the_fault(outcomes: Mapping[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert outcome.verdict.state == "failed"
    assert re.search(rf"^node {outcome.instance_id}: .*{FAULTS[name].reported}", outcome.verdict.reason)
