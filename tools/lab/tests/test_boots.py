"""Healthy nodes pass their verification at any boot, such as after a power loss or from an image of another node."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tools.lab.laboratory import Laboratory
from tools.lab.neuron_software import default_image
from tools.lab.node import Node
from tools.lab.plans import BARE, lab_plan
from tools.lab.site import SHORT_TIMEOUTS, Outcome, Site
from tools.lab.waiting import wait_for
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_wire.node_record import NodeRecord

INSTALLED_LAST = "etc/systemd/system/multi-user.target.wants/trn-node.service"
LOG = "var/log/trn-node.log"
WAITS_IN_THE_INSTALLATION = """\
#!/bin/sh
[ "$1" = trn-job.conf ] && exec sleep infinity
exec /usr/bin/systemd-sysusers "$@"
"""


@pytest.fixture(scope="module")
def site(lab: Laboratory) -> Site:
    return Site(lab, lab_plan())


@pytest.fixture
def node(site: Site) -> Iterator[Node]:
    node = site.node(environment=SHORT_TIMEOUTS)
    yield node
    site.lab.remove(node)


@pytest.fixture(scope="module")
def verified(site: Site) -> Iterator[Node]:
    """A running node that passed its verification."""
    node = site.node()
    node.power_on()
    assert site.outcome(node).verdict.state == "ready"
    yield node
    site.lab.remove(node)


def log_contains(node: Node, command: str) -> Callable[[], bool]:
    return lambda: (node.root / LOG).exists() and command in node.read(LOG)


def assert_verified(outcome: Outcome) -> None:
    assert outcome.verdict.reason == "1 of 1 nodes verified", outcome


def test_record_of_single_node_contains_every_applicable_check(site: Site, verified: Node) -> None:
    record = site.record(verified)
    assert record
    without = {"lnc", "ultraserver", "peers", "internode-collectives"}  # For a trn1 without peers.
    without |= {"gpus", "gpu-settings", "dcgm"}
    assert {check.name for check in record.checks} == NODE_CHECKS.keys() - without


def test_node_with_a_gpu_is_verified_by_the_checks_of_gpus(lab: Laboratory) -> None:
    site = Site(lab, lab_plan(instance_type="g6e.xlarge"))
    node = site.node()
    node.power_on()
    outcome = site.outcome(node)
    assert_verified(outcome)
    assert outcome.record
    names = {check.name for check in outcome.record.checks}
    assert names >= {"gpus", "gpu-settings", "device-memory", "dcgm", "self-test"}
    assert not names & {"neuron-devices", "neuron-cores"}
    lab.remove(node)


def test_image_has_the_driver_and_runtime_of_its_release(site: Site, verified: Node) -> None:
    record = site.record(verified)
    assert record
    packages = default_image()["packages"]
    driver, runtime = packages["aws-neuronx-dkms"], packages["aws-neuronx-runtime-lib"]
    assert [check.found for check in record.checks if check.name == "driver"] == [f"driver {driver}, runtime {runtime}"]


def test_cloud_init_reports_no_error(verified: Node) -> None:
    wait_for("cloud-init", lambda: verified.succeeds("test", "-e", "/run/cloud-init/result.json"))
    assert '"errors": []' in verified.execute("cat", "/run/cloud-init/result.json")


def test_cloud_init_schema_accepts_cloud_config(verified: Node) -> None:
    verified.execute("cloud-init", "schema", "--system")


def test_verified_node_has_no_failed_unit(verified: Node) -> None:
    wait_for("the boot's end", lambda: verified.succeeds("systemctl", "is-active", "trn-node-watch.service"))
    assert verified.execute("systemctl", "--failed", "--plain", "--no-legend") == ""


@pytest.mark.usefixtures("verified")
def test_metadata_service_is_queried_with_token_only(lab: Laboratory) -> None:
    assert lab.metadata.tokens
    assert lab.metadata.refused == 0


def test_node_from_image_downloads_only_its_node_script(lab: Laboratory, verified: Node) -> None:
    requests = lab.proxy.of(verified.instance.address)
    polled = ("cluster.json", "job.json")
    downloads = [request for request in requests if request.method == "GET" and not request.path.endswith(polled)]
    assert [request.path.split("/")[1] for request in downloads] == ["scripts"]


def test_bare_node_installs_its_software_and_is_verified(lab: Laboratory) -> None:
    site = Site(lab, lab_plan(**BARE))
    node = site.node(layers=lab.bare)
    node.power_on()
    assert_verified(site.outcome(node))
    lab.remove(node)


@pytest.mark.parametrize("release", ["2.27.1", "2.28.0"])
def test_node_with_programs_of_older_releases_is_verified(site: Site, release: str) -> None:
    node = site.node(replace(site.hardware, neuron_release=release))
    node.power_on()
    assert_verified(site.outcome(node))
    site.lab.remove(node)


def test_checks_that_do_not_affect_jobs_only_warn(site: Site) -> None:
    node = site.node(replace(site.hardware, clock_synchronised=False), environment=SHORT_TIMEOUTS)
    node.write("usr/share/trnlab/neuron_driver", "2.26.5.0\n")
    node.power_on()
    outcome = site.outcome(node)
    assert outcome.verdict.state == "ready"
    for warning in ("driver 2.26.5.0 and runtime", "the clock is not synchronised"):
        assert warning in outcome.verdict.reason
    assert outcome.record
    assert [check.name for check in outcome.record.checks if check.warning] == ["driver", "time-sync"]
    site.lab.remove(node)


def test_slow_metadata_service_does_not_fail_the_node(lab: Laboratory, site: Site, node: Node) -> None:
    lab.metadata.subjects[node.instance.address].delay_seconds = 0.3
    node.power_on()
    assert_verified(site.outcome(node))


def test_reboot_during_verification_leaves_node_verified(site: Site, node: Node) -> None:
    node.power_on()
    wait_for("the verification", log_contains(node, "verify the node"))
    node.execute("systemctl", "reboot", "--no-block")
    assert_verified(site.outcome(node))


def test_power_loss_during_verification_leaves_node_verified(site: Site, node: Node) -> None:
    node.power_on()
    wait_for("the verification", log_contains(node, "verify the node"))
    node.cut_power()
    node.power_on()
    assert_verified(site.outcome(node))


def test_power_loss_during_installation_leaves_node_verified(site: Site, node: Node) -> None:
    node.write("usr/local/bin/systemd-sysusers", WAITS_IN_THE_INSTALLATION)
    waits = node.root / "usr/local/bin/systemd-sysusers"
    waits.chmod(0o755)
    node.power_on()
    wait_for("the installation", (node.root / "opt/trn").exists)
    node.cut_power()
    waits.unlink()
    assert not (node.root / INSTALLED_LAST).exists()
    node.power_on()
    assert_verified(site.outcome(node))


def test_node_is_verified_at_every_boot(site: Site, node: Node) -> None:
    node.power_on()
    first = site.outcome(node).record
    assert first
    wait_for("the boot's end", lambda: node.succeeds("systemctl", "is-active", "trn-node-watch.service"))
    node.fit(replace(site.hardware, missing_devices=(3,)))
    node.execute("systemctl", "reboot", "--no-block")
    second = wait_for("another record", lambda: newer(site, node, first.time))
    assert (second.state, second.reason[:44]) == ("failed", "15 of 16 Neuron devices (missing: device 3);")


def newer(site: Site, node: Node, than: str) -> NodeRecord | None:
    record = site.record(node)
    return record if record and record.time > than else None


def test_nodes_from_image_of_verified_node_are_verified_again(lab: Laboratory, site: Site) -> None:
    original = site.node()
    original.power_on()
    assert_verified(site.outcome(original))
    before = site.record(original)
    original.power_off()
    copies = [site.node(layers=[original.written, *lab.image]) for _ in range(2)]
    for copy in copies:
        copy.power_on()
    for copy in copies:
        assert_verified(site.outcome(copy))
    assert site.record(original) == before
    for copy in (*copies, original):
        lab.remove(copy)
