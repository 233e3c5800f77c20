"""An idle job, a busy job and a failing device on a booted node: metrics, alarms, Prometheus, `trn` and the records."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tools.alarms import print_metrics, raised, run_controller
from tools.lab.cluster_jobs import ClusterJobs, write_job_file
from tools.lab.deployment import deploy, destroy, output
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import Laboratory
from tools.lab.node import Node
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.prometheus import EXAMPLE, Prometheus, prometheus, promtool
from trainium_runtime.facts import facts
from trainium_runtime.node_metrics import METRICS_NAMESPACE, Window
from trainium_runtime.usage_store import read_reports
from trainium_wire.metric_sample import MetricSample

NAMESPACE = f"{METRICS_NAMESPACE}/trn-pilot"
# The alarms of this test must not depend on dimensions, which moto's statistics ignore.
SETTINGS = {"nodes": "1", "cloudwatch_metrics": "cluster", "metrics_port": "9400", "node_recovery": "off"}
COUNTER = "/sys/devices/virtual/neuron_device/neuron3/stats/hardware/mem_ecc_uncorrected"
COMPUTES = f"while open('{COUNTER}').read() == '0\\n': pass"
COMMANDS = {"idle": "sleep 1000", "busy": f"python3 -c {shlex.quote(COMPUTES)}; exit 1"}
"""The commands of the jobs. The busy one fails once the device has counted an error."""

SAMPLED_MORE_OFTEN = """\
[Service]
ExecStartPre=sed -i 's/^SECONDS = 60/SECONDS = 10/' /opt/trn/trn_node/usage.py /opt/trn/trn_node/device_readings.py
ExecStartPre=sed -i 's/^SEND_SECONDS = 240/SEND_SECONDS = 3600/' /opt/trn/trn_node/usage.py
"""
"""A node takes a sample every ten seconds instead of every minute, so that the test takes less time. It has only those
of the last minutes, so it does not send a report without the error of the device while the test looks at the error."""


def prepare(_number: int, node: Node) -> None:
    node.write("etc/systemd/system/trn-node-watch.service.d/50-trnlab.conf", SAMPLED_MORE_OFTEN)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What was seen of the two jobs, by their names in COMMANDS. The device has failed during the busy one.

    Attributes:
        ids: The IDs of the jobs.
        samples: A sample of the node during each job.
        alerts: The alerts of Prometheus near the end of each job.
        shown: The output of `trn jobs JOB`, with the lines of `--record` below.
        status: The output of `trn status`.
        nodes: The output of `trn nodes --json`.
        raised: The alarms of CloudWatch, by metric, from the samples of both jobs.
    """

    ids: Mapping[str, str]
    samples: Mapping[str, MetricSample]
    alerts: Mapping[str, Mapping[str, Any]]
    shown: Mapping[str, str]
    status: str
    nodes: Any
    raised: set[str]


@pytest.fixture(scope="module")
def cluster(lab: Laboratory, hypervisor: Hypervisor) -> Iterator[ClusterJobs]:
    hypervisor.prepare(prepare)
    run = deploy(**SETTINGS)
    assert run.code == 0, run.errors
    yield ClusterJobs(lab, hypervisor, SETTINGS)
    run = destroy()
    assert run.code == 0, run.errors


@pytest.fixture(scope="module")
def monitor(lab: Laboratory, cluster: ClusterJobs) -> Iterator[Prometheus]:
    assert cluster.count == 1
    with prometheus(lab) as running:
        yield running


def submit(cluster: ClusterJobs, name: str) -> str:
    source = RUN / "metrics"
    source.mkdir(exist_ok=True)
    (source / "README").write_text("a job needs a source\n")
    file = write_job_file(name, COMMANDS[name], source, nodes=1)
    return json.loads(cluster.trn("run", "--detach", "--json", str(file)))["job"]["id"]


def sample_of(cluster: ClusterJobs, job: str) -> MetricSample:
    """The sample of a job with the highest utilization in the usage report of the node."""
    (name,) = (node.instance.instance_id for node in cluster.nodes)

    def busiest() -> MetricSample | None:
        reports = read_reports(cluster.s3, cluster.bucket, [name])
        taken = [one for one in reports[name].samples if one.job == job] if name in reports else []
        return max(taken, key=lambda one: one.core_utilization or 0, default=None)

    return cluster.wait_for(f"a report with a sample of {job}", busiest)


@pytest.fixture(scope="module")
def observed(lab: Laboratory, cluster: ClusterJobs, monitor: Prometheus) -> Observed:
    cluster.wait_for("the verification", cluster.is_verified)
    ids, samples, alerts = dict[str, str](), dict[str, MetricSample](), dict[str, Mapping[str, Any]]()

    ids["idle"] = submit(cluster, "idle")
    cluster.wait_for("an idle job in Prometheus", lambda: "TrnIdleJob" in monitor.alerts())
    alerts["idle"] = monitor.alerts()
    cluster.trn("stop", "--detach", ids["idle"])
    cluster.end_of(ids["idle"])
    samples["idle"] = sample_of(cluster, ids["idle"])

    ids["busy"] = submit(cluster, "busy")
    computing = f'trn_core_utilization_ratio * on (instance) trn_job_info{{job_id="{ids["busy"]}"}} > 0.05'
    cluster.wait_for("a busy job in Prometheus", lambda: monitor.query(computing))
    cluster.nodes[0].execute("sh", "-c", f"echo 1 >{COUNTER}")
    cluster.end_of(ids["busy"])
    cluster.wait_for("the alert", lambda: "TrnUncorrectedMemoryErrors" in monitor.alerts())
    alerts["busy"] = monitor.alerts()
    samples["busy"] = sample_of(cluster, ids["busy"])

    def failed_nodes() -> str:
        shown = trn(cluster, "nodes", "--json")
        return shown if '"failed"' in shown else ""

    nodes = json.loads(cluster.wait_for("the failed node", failed_nodes))

    # The controller prints samples that are at least six minutes old. So that the test need not wait, the scheduled
    # times of its runs are in the future.
    now = datetime.now(UTC)
    run = now + (now - Window.before(now).end)
    for at in (run - timedelta(minutes=5), run):
        run_controller(lab.client, output(lab, "ControllerFunction"), at)
    return Observed(
        ids=ids,
        samples=samples,
        alerts=alerts,
        shown={
            name: f"{trn(cluster, 'jobs', job)}{trn(cluster, 'jobs', job, '--record')}" for name, job in ids.items()
        },
        status=trn(cluster, "status"),
        nodes=nodes,
        raised=raised(lab.client("cloudwatch"), NAMESPACE, run),
    )


def trn(cluster: ClusterJobs, *words: str) -> str:
    """The output of a command, whose exit code says that a job or a node has failed."""
    command = cluster.command(*words)
    return subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, check=False
    ).stdout


def test_samples_tell_a_busy_job_from_an_idle_one(observed: Observed) -> None:
    idle, busy = (observed.samples[name].core_utilization for name in ("idle", "busy"))
    assert idle is not None
    assert busy is not None
    assert idle < facts()["metrics"]["idle_job_percent"] < busy


def test_prometheus_alerts_of_idle_job_and_failing_device_only(observed: Observed) -> None:
    idle = observed.alerts["idle"]
    assert not {"TrnUncorrectedMemoryErrors", "TrnExecutionErrors"} & idle.keys()
    assert (idle["TrnIdleJob"]["state"], idle["TrnIdleJob"]["labels"]["job_id"]) == ("pending", observed.ids["idle"])
    (name,) = (node["instance_id"] for node in observed.nodes["nodes"])
    alert = observed.alerts["busy"]["TrnUncorrectedMemoryErrors"]
    assert (alert["state"], alert["labels"]["instance"], alert["labels"]["cluster"]) == ("firing", name, "trn-pilot")


def test_alarm_of_the_failing_device_is_raised(observed: Observed) -> None:
    assert observed.raised == {"UncorrectedMemoryErrors"}


@pytest.mark.parametrize(("name", "metrics"), [("idle", {"JobCoreUtilization"}), ("busy", set[str]())])
def test_sample_of_a_job_raises_the_alarm_only_if_it_stays_idle(
    lab: Laboratory, cluster: ClusterJobs, observed: Observed, name: str, metrics: set[str]
) -> None:
    """The sample that the node took, for 45 minutes some hours ago."""
    sample = replace(observed.samples[name], ecc_uncorrected=0)
    until = (datetime.now(UTC) - timedelta(hours=3 * [*COMMANDS].index(name) + 3)).replace(second=0, microsecond=0)
    controller = output(lab, "ControllerFunction")
    print_metrics(lab.client, bucket=cluster.bucket, controller=controller, sample=sample, until=until)
    assert raised(lab.client("cloudwatch"), NAMESPACE, until) == metrics


def test_commands_show_the_failed_device_and_the_utilization(observed: Observed) -> None:
    words = "Neuron device 3: new uncorrectable memory errors (mem_ecc_uncorrected)"
    assert words in observed.shown["busy"]
    assert "Cause:" not in observed.shown["idle"]
    for name in COMMANDS:
        assert re.search(r"busy +cores \d+% on average; node 0 \d+%", observed.shown[name]), observed.shown[name]
        assert '"event": "utilization"' in observed.shown[name]
    (node,) = observed.nodes["nodes"]
    assert (node["state"], node["metrics"]["ecc_uncorrected"]) == ("failed", 1)
    assert "errors 1" in observed.status


@pytest.mark.usefixtures("observed")
def test_endpoint_is_served_by_a_user_without_rights(cluster: ClusterJobs) -> None:
    node = cluster.nodes[0]
    process = node.execute("systemctl", "show", "--property=MainPID", "--value", "trn-node-metrics").strip()
    user, capabilities = node.execute(
        "sh", "-c", f"stat -c %U /proc/{process}; grep CapEff /proc/{process}/status"
    ).split("\n")[:2]
    assert user not in ("root", "trn-job")
    assert capabilities.split()[1] == "0" * 16


def test_prometheus_accepts_the_expressions_of_the_dashboard(observed: Observed, monitor: Prometheus) -> None:
    assert observed
    dashboard = json.loads((EXAMPLE / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            monitor.query(target["expr"].replace("$cluster", ".*"))


def test_promtool_accepts_the_rules_their_tests_and_the_configuration() -> None:
    assert "4 rules found" in promtool("check", "rules", "trn-rules.yml")
    promtool("check", "config", "prometheus.yml")
    assert "SUCCESS" in promtool("test", "rules", "trn-rules-test.yml")
