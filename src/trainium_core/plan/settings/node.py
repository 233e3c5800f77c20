"""The setup of a node, the time limit of a deployment, what happens to a failed node, and the metrics of nodes."""

from typing import Literal, get_args

from trainium_core.facts import facts
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_core.setting_schema.forms import Choice, ListOf, Switch, WholeNumber
from trainium_core.setting_schema.setting import resource_id, section, setting

NeuronSoftware = Literal["image", "install"]
NEURON_SOFTWARE: tuple[NeuronSoftware, ...] = get_args(NeuronSoftware)
Verification = Literal["enforce", "observe"]
VERIFICATION: tuple[Verification, ...] = get_args(Verification)
CloudWatchMetrics = Literal["nodes", "cluster", "none"]
CLOUDWATCH_METRICS: tuple[CloudWatchMetrics, ...] = get_args(CloudWatchMetrics)
METRICS_PORTS = (1024, 32767)
"""Those below Linux's ephemeral ports, which jobs and the tests of a node use."""

_LARGEST_BY_NODE = facts()["metrics"]["largest_by_node"]


def effective_metrics(wanted: CloudWatchMetrics | None, nodes: int) -> CloudWatchMetrics:
    """The metrics in CloudWatch, by default those of each node in small clusters."""
    return wanted or ("nodes" if nodes <= _LARGEST_BY_NODE else "cluster")


@section
class Node:
    """Settings that apply to every node."""

    timeout_minutes: int = setting(
        "node_timeout_minutes",
        WholeNumber(1, facts()["custom_resource"]["timeout_minutes"] - 5),
        default=50,
        meaning="maximum minutes that a deployment waits until every node is verified, including replacements; a first "
        "deployment waits a fifth of it for instances that AWS does not have",
    )
    neuron_software: NeuronSoftware = setting(
        "neuron_software",
        Choice(NEURON_SOFTWARE),
        default="image",
        default_text="{} (a Neuron DLAMI has everything; nothing is downloaded)",
        meaning="source of driver, runtime and tools; install is for images of Ubuntu 24.04 or Amazon Linux 2023 "
        "without Neuron software, and not for types with GPUs",
        replaces_nodes=True,
    )
    suppress_checks: tuple[str, ...] = setting(
        "suppress_checks",
        ListOf(Choice(tuple(NODE_CHECKS)), f"names, separated by commas: {', '.join(NODE_CHECKS)}"),
        default=(),
        default_text="none",
        meaning="node checks that run and are shown, but do not fail the node; internode-collectives does not run "
        "if it is suppressed",
    )
    verification: Verification = setting(
        "verification",
        Choice(VERIFICATION),
        default="enforce",
        meaning="what fails a node: every failed check that jobs depend on (enforce), or only missing devices, missing "
        "cores and wrong results, while other failed checks are warnings (observe)",
    )
    recovery: bool = setting(
        "node_recovery",
        Switch(),
        default=True,
        meaning="whether failed nodes are replaced, during a deployment and after it",
    )
    replacements: int = setting(
        "node_replacements",
        WholeNumber(0, 100),
        default=2,
        meaning="maximum number of failed nodes that are replaced in any 24 hours; a further failed node is not "
        "replaced, and fails a deployment",
    )
    internode_ssh: bool = setting(
        "internode_ssh",
        Switch(),
        default=False,
        meaning="whether nodes can connect to each other by SSH, for MPI and nccom-test across nodes",
        replaces_nodes=True,
    )
    generation: int = setting(
        "node_generation",
        WholeNumber(1),
        default=1,
        meaning="another number replaces all nodes in the next deployment; the new nodes have the current image, node "
        "program and tags",
        replaces_nodes=True,
    )
    cloudwatch_metrics: CloudWatchMetrics | None = setting(
        "cloudwatch_metrics",
        Choice(CLOUDWATCH_METRICS),
        default=None,
        default_text=f"nodes for up to {_LARGEST_BY_NODE} nodes, else cluster",
        meaning="utilization and errors in CloudWatch, with a dashboard and alarms: of the cluster and of each node "
        "(nodes), only of the cluster (cluster), or none; metrics are billed while nodes run",
    )
    metrics_port: int | None = setting(
        "metrics_port",
        WholeNumber(*METRICS_PORTS),
        default=None,
        meaning="TCP port on which nodes serve these metrics to Prometheus, at the path /metrics",
        replaces_nodes=True,
    )
    metrics_security_group: str | None = setting(
        "metrics_security_group",
        resource_id("sg", "a security group in the VPC of the nodes"),
        default=None,
        default_text="none: only the nodes themselves reach trn:metrics_port",
        meaning="security group of your Prometheus servers, which may connect to trn:metrics_port",
    )
