"""`trn shell`: a shell on a node of the cluster, or a local port that leads to one of its ports."""

import contextlib
import shutil
import signal
import socket
import subprocess

import click

from trainium_cli.cluster_choice import cluster_stack_name, missing_stack, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, context_options, pass_invocation, stack_option
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.next_steps import PLUGIN_INSTALL_URL, PROGRAMS, forward_command, session_command
from trainium_core.nodes.report import DeployedNodes
from trainium_core.plan import Plan
from trainium_core.problems import nearest


def _ports(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """The local port and the node's port of `[LOCAL:]PORT`. Raises BadParameter."""
    if value is None:
        return None
    local, _, port = value.rpartition(":")
    with contextlib.suppress(ValueError):
        ports = int(local or port), int(port)
        if all(1 <= number <= 65535 for number in ports):
            return ports
    allowed = "a port from 1 to 65535, such as 6006, or two, such as 16006:6006"
    raise click.BadParameter(f"got {value!r}\n    allowed: {allowed}")


@click.command()
@click.argument("node", required=False)
@click.option(
    "--forward",
    metavar="[LOCAL:]PORT",
    callback=_ports,
    help="Open no shell, but forward this port of localhost to the node, for example to TensorBoard. Default of LOCAL: "
    "the same port.",
)
@stack_option
@context_options
@pass_invocation
def shell(invocation: Invocation, node: str | None, forward: tuple[int, int] | None, stack: str | None) -> int:
    """Open a shell on a node, or forward a port to it.

    NODE is a node's rank, such as 3, or an instance ID. Default: the first node. The shell runs as the image's default
    user, with the environment of jobs, through Session Manager. Needs the AWS CLI and its Session Manager plugin.

    Exit code: that of the session. If no session was started, 1: not possible. 2: no such NODE. 3: unknown.
    """
    plan = read_cluster_plan(invocation)
    _check_session(plan)
    if forward and not _is_free(forward[0]):
        local, port = forward
        message = f"Port {local} is in use on this machine: specify another one with --forward LOCAL:{port}"
        raise CliError(message, ExitCode.NOT_READY)
    stack = cluster_stack_name(invocation, plan, stack)
    with waiting(f"Asking AWS for the nodes of {stack} ..."):
        deployed = AwsNodes(plan.region, clients=invocation.clients).nodes(stack)
    if deployed is None:
        raise missing_stack(invocation, plan, stack)
    instance_id = _instance(deployed, node)
    if forward:
        local, port = forward
        echo(f"localhost:{local} is port {port} of {instance_id}. Ctrl-C ends it.", err=True)
        return _session(forward_command(plan.region, instance_id, port, local))
    echo(f"{instance_id}: leave it with `exit`.", err=True)
    return _session(session_command(plan.region, instance_id))


def _check_session(plan: Plan) -> None:
    if plan.network.effective_egress == "none":
        message = (
            "With trn:egress=none, nodes reach only S3, and sessions are impossible. Use `trn cp` and `trn logs`, or "
            "set trn:egress=vpc-endpoints."
        )
        raise CliError(message, ExitCode.NOT_READY)
    for program, name in PROGRAMS.items():
        if shutil.which(program) is None:
            message = f"{program} is not on the PATH: install {name}, see {PLUGIN_INSTALL_URL}"
            raise CliError(message, ExitCode.NOT_READY)


def _instance(deployed: DeployedNodes, node: str | None) -> str:
    """The selected instance; by default the first one.

    Raises:
        CliError: The cluster has no nodes.
        UsageError: No node has this rank or ID.
    """
    ids = [instance.instance_id for instance in deployed.instances]
    if not ids:
        remedy = "`trn nodes` shows the reason; if the cluster is asleep, `trn wake` starts its nodes"
        if deployed.for_jobs is not None:
            remedy = "a job starts them. The output Session of its stack is a command for a shell on the login node"
        message = f"The cluster has no nodes: {remedy}."
        raise CliError(message, ExitCode.NOT_READY)
    # Ranks exist only once all nodes are verified. Until then, any node may be useful to find the reason.
    members = [member.instance_id for member in deployed.membership.members]
    by_rank = {str(rank): member for rank, member in enumerate(members) if member in ids}
    by_rank = by_rank or {str(number): instance_id for number, instance_id in enumerate(ids)}
    if node is None:
        return next(iter(by_rank.values()))
    if node in ids:
        return node
    if node in by_rank:
        return by_rank[node]
    close = nearest(node, ids)
    hint = f"; nearest: {close}" if close else ""
    raise click.UsageError(f"NODE: got {node!r}\n    allowed: {', '.join([*by_rank, *ids])}{hint}")


def _is_free(port: int) -> bool:
    """Whether this machine can listen on the port of localhost."""
    with socket.socket() as listener:
        # As programs that listen do: a connection that ended a minute ago does not hold the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _session(command: list[str]) -> int:
    """Run the session. Ctrl-C goes to its program: the shell on the node, or the plugin, which ends forwarding."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
