"""The next steps with a deployed cluster: commands to copy."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainium_core.facts import facts
from trainium_core.naming import DEFAULT_CLUSTER_NAME
from trainium_core.plan import Plan
from trainium_core.problems import SETTING_PREFIX


def torchrun_command(plan: Plan) -> str:
    """The torchrun command line that every node of the plan runs."""
    return _torchrun_line(plan.nodes, plan.processes_per_node)


def _torchrun_line(nodes: int, processes: int) -> str:
    """The torchrun command line that every node runs, with one process for each logical NeuronCore or GPU.

    A login shell puts the framework's programs on PATH, and sets the node's rank and the address of the first node from
    the membership. The command line starts a login shell, so that it works in a shell, a session and a service. Ranks
    are static: the c10d rendezvous would rank nodes by host name, and rank 0 must be at the address that all nodes
    receive.
    """
    return (
        f"bash -lc 'torchrun --nnodes={nodes} --nproc_per_node={processes} "
        f"--node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE "
        f"--master_port={facts()['rendezvous']['port']} train.py'"
    )


DOCUMENT = "AWS-StartInteractiveCommand"
FORWARD_DOCUMENT = "AWS-StartPortForwardingSession"

LOGIN = "sudo -iu $(id -nu 1000)"
"""Starts a login shell of the image's default user, who has ID 1000.

Session Manager's own shell reads no profile, and its limits are too low for EFA. `id` translates the user ID to a name:
the agent runs this text with `sh -c`, where sudo's `#1000` would start a comment.
"""

PROGRAMS = {
    "aws": "the AWS CLI",
    "session-manager-plugin": "the Session Manager plugin of the AWS CLI",
}
"""Programs that a session needs on the user's machine."""

PLUGIN_INSTALL_URL = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)


def session_command(region: str, instance_id: str) -> list[str]:
    """The command that starts a session."""
    return [
        *("aws", "ssm", "start-session", "--region", region, "--document-name", DOCUMENT),
        *("--parameters", f"command={LOGIN}", "--target", instance_id),
    ]


def forward_command(region: str, instance_id: str, port: int, local_port: int) -> list[str]:
    """The command that forwards a local port to a port of the node.

    Source: AWS Systems Manager User Guide, "Starting a session (port forwarding)".
    """
    return [
        *("aws", "ssm", "start-session", "--region", region, "--document-name", FORWARD_DOCUMENT),
        *("--parameters", f"portNumber={port},localPortNumber={local_port}", "--target", instance_id),
    ]


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """An output of the stack.

    Attributes:
        name: Name of the output.
        meaning: Description of the output.
        value: The value, or the command to copy.
    """

    name: str
    meaning: str
    value: str


def destroy_command(construct_path: str, engine: str, cluster_name: str) -> str:
    """The command that destroys a stack of a plan's app.

    Args:
        construct_path: Path of the stack in the app.
        engine: Key of the stack in trn:stacks.
        cluster_name: Name of the cluster.
    """
    stacks = "" if engine == "cluster" else f" -c {SETTING_PREFIX}stacks={engine}"
    return f"cdk destroy {construct_path}{stacks}{_cluster_option(cluster_name)}"


def next_steps(
    *,
    cluster_name: str,
    nodes: int,
    processes: int,
    region: str,
    group_name: str,
    cache_url: str,
    destroy: str,
    sessions: bool = True,
) -> Iterator[NextStep]:
    """The next steps, in the order of use.

    Args:
        cluster_name: Name of the cluster.
        nodes: Number of nodes.
        processes: Processes of torchrun on each node.
        region: The region, which may be a CDK token.
        group_name: Name of the Auto Scaling group, which may be a CDK token.
        cache_url: URL of the compile cache, which may be a CDK token.
        destroy: The command that destroys the stack.
        sessions: Whether Session Manager reaches the nodes.
    """
    if sessions:
        first = (
            f"aws autoscaling describe-auto-scaling-groups --region {region} "
            f"--auto-scaling-group-names {group_name} "
            "--query 'AutoScalingGroups[0].Instances[0].InstanceId' --output text"
        )
        yield NextStep(
            name="Session",
            meaning="Opens a shell on a node; requires the AWS CLI with the Session Manager plugin",
            value=f"aws ssm start-session --region {region} --document-name {DOCUMENT} "
            f"--parameters command='{LOGIN}' --target $({first})",
        )
    option = f" --cluster {cluster_name} --region {region}"
    yield NextStep(
        name="Nodes",
        meaning="Shows whether each node is verified, and if not, why",
        value=f"trn nodes{option}",
    )
    train = _torchrun_line(nodes, processes)
    yield NextStep(name="Torchrun", meaning="Starts training; run it on every node", value=train)
    yield NextStep(name="CompileCache", meaning="The folder of compiled graphs", value=cache_url)
    yield NextStep(
        name="Sleep",
        meaning="Terminates the nodes, and deletes the endpoints and the NAT gateway of a new VPC; the cache and file "
        "systems stay",
        value=f"trn sleep{option}",
    )
    yield NextStep(name="Wake", meaning="Launches the nodes again", value=f"trn wake{option}")
    yield NextStep(name="Destroy", meaning="Deletes the stack; retained resources stay", value=destroy)


def _cluster_option(cluster_name: str) -> str:
    """The option that names the cluster, for commands that may read a plan without the cluster's name."""
    return "" if cluster_name == DEFAULT_CLUSTER_NAME else f" -c {SETTING_PREFIX}cluster_name={cluster_name}"
